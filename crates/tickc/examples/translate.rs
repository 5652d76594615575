//! Translates preprocessed 'C from the standard input to C on the standard output:
//! `cc -E -x c -fno-dollars-in-identifiers sum.tc | cargo run -p quaject-tickc --example translate > sum.c`.

use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source)?;
    let translation = quaject_tickc::translate(&source);
    for diagnostic in &translation.diagnostics {
        let place = translation.lines.locate(diagnostic.span.start);
        eprintln!("{}:{}: {diagnostic}", place.file, place.line);
    }
    print!("#include <quaject/tickc.h>\n{}", translation.text);
    Ok(())
}
