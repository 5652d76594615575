//! Questions beside the four programs: random chains of the same filters, and input that a fast path is left for at
//! once, every time. Knows how programs are translated and run from `main`.

use super::{Contender, instructions_per_byte, is_there, run, succeed, translate, translate_as_far};
use quaject_bench_filters_process::chains;
use quaject_bench_harness::{instructions, median};
use quaject_esp::{Mode, Unrolling};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHAINS: u64 = 20;
const RUNS: usize = 11;
/// How often the array is read in a timed run.
const TIMES: u32 = 300;

/// The compilers of each form.
fn compilers() -> Vec<&'static str> {
    ["gcc", "clang"].into_iter().filter(|compiler| is_there(compiler)).collect()
}

/// A form of a program, to be compiled by each compiler.
struct Form {
    name: &'static str,
    folder: PathBuf,
    sources: Vec<PathBuf>,
}

/// Nanoseconds and instructions per byte, each the best of the compilers.
fn measure(forms: &[Form], place: &Path) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let mut contenders = Vec::new();
    for form in forms {
        for compiler in compilers() {
            let program = form.folder.join(compiler);
            let mut command = Command::new(compiler);
            command.args(["-std=c99", "-O2", "-I."]).arg("-o").arg(&program).args(&form.sources);
            succeed(command.current_dir(&form.folder))?;
            contenders.push(Contender::new(form.name, Box::new(move |_| Command::new(&program)), TIMES));
        }
    }
    let mut results = Vec::new();
    for contender in &contenders {
        results.push(run((contender.command)(0), 7)?.1);
    }
    if results.iter().any(|result| *result != results[0]) {
        return Err(format!("{}: results differ: {results:?}", place.display()).into());
    }
    for _ in 0..RUNS {
        for contender in &mut contenders {
            let (nanoseconds, _) = run((contender.command)(0), TIMES)?;
            contender.seconds.push(nanoseconds);
        }
    }
    let best = |of: &[Contender], value: &dyn Fn(&Contender) -> f64| of.iter().map(value).fold(f64::INFINITY, f64::min);
    let of_form = |of: &[Contender]| {
        let counted = |contender: &Contender| instructions_per_byte(contender, 0, place).unwrap_or(f64::NAN);
        (best(of, &|contender| median(&contender.seconds)), best(of, &counted))
    };
    Ok(contenders.chunks(compilers().len()).map(of_form).collect())
}

/// Automata of random chains beside push-style C that is inlined, always.
pub(super) fn random_chains(place: &Path) -> Result<(), Box<dyn Error>> {
    println!("random chains, automata : always-inlined push-style C, best of gcc and clang -O2 each");
    let mut ratios = Vec::new();
    for seed in 1..=CHAINS {
        let folder = place.join(format!("chain{seed}"));
        std::fs::create_dir_all(&folder)?;
        let source = folder.join("chain.esp");
        std::fs::write(&source, chains::esp(seed))?;
        std::fs::write(folder.join("push.c"), chains::push_style(seed))?;
        let refused = translate_as_far(&source, &folder, Mode::Automata, Unrolling::Off)?;
        let automata = vec![PathBuf::from("program.c"), Path::new(env!("CARGO_MANIFEST_DIR")).join("main.c")];
        let push = folder.join("push");
        std::fs::create_dir_all(&push)?;
        let forms = [
            Form { name: "automata", folder: folder.clone(), sources: automata },
            Form { name: "push", folder: push, sources: vec![folder.join("push.c")] },
        ];
        let [(time, count), (by_push, counted_push)] = measure(&forms, &folder)?[..] else {
            unreachable!("two forms were measured")
        };
        let (slower, more) = (time / by_push, count / counted_push);
        print!("  {seed:>2} time {slower:.2} ({time:.2} : {by_push:.2} ns), ");
        println!("instructions {more:.2} ({count:.1} : {counted_push:.1})  {}", chains::names(seed));
        refused.iter().for_each(|why| println!("     {why}"));
        ratios.push((refused.is_empty(), slower, more));
    }
    let mean = |of: &[f64]| of.iter().product::<f64>().powf(1.0 / of.len() as f64);
    for (name, wanted) in [("all", false), ("those fused to one", true)] {
        let chosen = || ratios.iter().filter(|(is_whole, _, _)| *is_whole || !wanted);
        let times: Vec<f64> = chosen().map(|(_, time, _)| *time).collect();
        let counts: Vec<f64> = chosen().map(|(_, _, count)| *count).collect();
        println!(
            "  {name}, {}: geometric means: time {:.2}, instructions {:.2}",
            times.len(),
            mean(&times),
            mean(&counts)
        );
    }
    Ok(())
}

/// The four programs with their end of stream in band, a byte that every filter looks for, as in the paper. There it is
/// 0, which checksums and pads could be too; here 192, which neither the data nor what filters make of it has, but for
/// a checksum by chance. So the results are those of the other programs, as long as they are checked.
pub(super) fn in_band(place: &Path) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = place.join("in-band");
    std::fs::create_dir_all(&folder)?;
    println!("end of stream in band, best of gcc and clang: ns per byte (: by hand), instructions per byte");
    for program in 1..=4 {
        let text = std::fs::read_to_string(here.join(format!("esp/program{program}.esp")))?;
        let examples = here.join("../../examples");
        let text = text.replace("../../../examples", examples.to_str().ok_or("the path of the examples is no text")?);
        let in_band = text.replace("const END = -1;", "const END = 192;");
        if in_band == text {
            return Err(format!("program {program} has no end of stream to replace").into());
        }
        let source = folder.join(format!("program{program}.esp"));
        std::fs::write(&source, in_band)?;
        std::fs::copy(here.join(format!("esp/program{program}.fp")), source.with_extension("fp"))?;
        let mut refused = Vec::new();
        let mut forms = Vec::new();
        // By hand with the same end, and with the length for an end. They take the number of the program before that of
        // the turns.
        for (name, file) in [("hand", "hand_in_band.c"), ("hand, by length", "hand.c")] {
            let folder = folder.join(file).with_extension(program.to_string());
            std::fs::create_dir_all(&folder)?;
            let wrapper = folder.join("wrapper.c");
            std::fs::write(
                &wrapper,
                format!(
                    "#define main by_program\n#include \"{}\"\n#undef main\nint main(int count, char **arguments)\n\
                     {{\n    char *all[] = {{arguments[0], \"{program}\", arguments[1], NULL}};\n    \
                     return by_program(count + 1, all);\n}}\n",
                    here.join(file).display()
                ),
            )?;
            forms.push(Form { name, folder, sources: vec![wrapper] });
        }
        for (name, mode) in [("process", Mode::Process), ("fastpath", Mode::FastPath), ("automata", Mode::Automata)] {
            let folder = place.join(format!("in-band-{name}{program}"));
            refused.extend(translate_as_far(&source, &folder, mode, Unrolling::Off)?);
            forms.push(Form { name, folder, sources: vec!["program.c".into(), here.join("main.c")] });
        }
        let measured = measure(&forms, &folder)?;
        let by_hand = measured[0].0;
        print!("  {program}");
        for (form, (time, count)) in forms.iter().zip(&measured) {
            print!("  {}: {time:.2} ({:.2}), {count:.0}", form.name, time / by_hand);
        }
        println!();
        refused.iter().for_each(|why| println!("     {why}"));
    }
    Ok(())
}

/// A fast path that is left before it has done anything, for each byte, beside the same processes without it.
pub(super) fn aborting(place: &Path) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut forms = Vec::new();
    for (name, mode) in [("process", Mode::Process), ("fastpath", Mode::FastPath)] {
        let folder = place.join(format!("aborting-{name}"));
        translate(&here.join("esp/aborting.esp"), &folder, mode)?;
        let sources = vec![PathBuf::from("program.c"), here.join("main.c")];
        forms.push(Form { name, folder, sources });
    }
    let [(process, counted), (path, counted_path)] = measure(&forms, place)?[..] else {
        unreachable!("two forms were measured")
    };
    println!("input that a fast path is left for, every time, with the path : without, best of gcc and clang -O2 each");
    println!(
        "  time {:.2} ({path:.2} : {process:.2} ns), instructions {:.2} ({counted_path:.0} : {counted:.0})",
        path / process,
        counted_path / counted
    );
    Ok(())
}

/// Instructions per request of Figure 2's send path, of one page and of two: as processes, with the fast path of Figure
/// 5, as one state machine and by hand.
pub(super) fn messages(place: &Path) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = here.join("../../examples/vmmc-send");
    let folder = place.join("figure2");
    std::fs::create_dir_all(&folder)?;
    for name in ["figure2.esp", "functions.esp", "send.esp"] {
        std::fs::copy(examples.join(name), folder.join(name))?;
    }
    let source = folder.join("send.esp");
    std::fs::copy(examples.join("figure5.fp"), folder.join("send.fp"))?;
    let help = examples.join("help.c");
    let by_hand = place.join("figure2-hand");
    std::fs::create_dir_all(&by_hand)?;
    let hand = vec![here.join("figure2_hand.c"), help.clone()];
    let mut forms = vec![Form { name: "hand", folder: by_hand, sources: hand }];
    for (name, mode) in [("process", Mode::Process), ("fastpath", Mode::FastPath), ("automata", Mode::Automata)] {
        let folder = place.join(format!("figure2-{name}"));
        translate(&source, &folder, mode)?;
        forms.push(Form { name, folder, sources: vec!["program.c".into(), here.join("figure2.c"), help.clone()] });
    }
    println!("instructions per request of Figure 2, of one page and of two, each with gcc -O2 and clang -O2");
    for form in &forms {
        let mut counts = Vec::new();
        for program in build(form)? {
            for pages in ["1", "2"] {
                let count = |requests: &str| instructions(Command::new(&program).args([requests, pages]), None, place);
                counts.push(each(count));
            }
        }
        println!("  {}: {}", form.name, counts.join(", "));
    }
    blocks(place)
}

/// Instructions per block of the TFTP server's, inside its step: as processes, which have no fast path and do not
/// become one state machine, and by hand.
fn blocks(place: &Path) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = here.join("../../examples/tftp");
    let [processes, by_hand] = ["tftp", "tftp-hand"].map(|name| place.join(name));
    translate(&examples.join("server.esp"), &processes, Mode::Process)?;
    std::fs::create_dir_all(&by_hand)?;
    let forms = [
        (
            Form { name: "process", folder: processes, sources: vec!["program.c".into(), here.join("tftp.c")] },
            "esp_step",
        ),
        (Form { name: "hand", folder: by_hand, sources: vec![here.join("tftp_hand.c")] }, "on_packet"),
    ];
    println!("instructions per block of 512 bytes that the TFTP server gives, with gcc -O2 and clang -O2");
    for (form, inside) in forms {
        let programs = build(&form)?.into_iter();
        let count = |program: &Path, blocks: &str| instructions(Command::new(program).arg(blocks), Some(inside), place);
        let counts: Vec<String> = programs.map(|program| each(|blocks| count(&program, blocks))).collect();
        println!("  {}: {}", form.name, counts.join(", "));
    }
    Ok(())
}

/// What each compiler makes of a form.
fn build(form: &Form) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut programs = Vec::new();
    for compiler in compilers() {
        let program = form.folder.join(compiler);
        let mut command = Command::new(compiler);
        command.args(["-std=gnu99", "-O2", "-I."]).arg("-o").arg(&program).args(&form.sources);
        succeed(command.current_dir(&form.folder))?;
        programs.push(program);
    }
    Ok(programs)
}

/// Instructions of each message, from two runs of different length.
fn each(count: impl Fn(&str) -> Option<u64>) -> String {
    let each = count("1000").zip(count("200")).map(|(more, less)| (more - less) as f64 / 800.0);
    each.map_or("not counted".to_string(), |each| format!("{each:.0}"))
}
