//! `vcode-codegen ROOT [--check]`: writes what the specifications below ROOT generate, or reports what differs.

use std::path::Path;
use std::process::ExitCode;

use quaject_vcode_spec::{Source, generate};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (root, check) = match &arguments[..] {
        [root] => (root, false),
        [root, flag] if flag == "--check" => (root, true),
        _ => {
            eprintln!("usage: vcode-codegen ROOT [--check]");
            return ExitCode::from(2);
        }
    };
    match run(Path::new(root), check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, check: bool) -> Result<(), String> {
    let folder = root.join("machines");
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path)
            .map(|text| Source { name: name.to_string(), text })
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut names = Vec::new();
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".spec") && name != "portable.spec" {
            names.push(name);
        }
    }
    names.sort();
    let machines = names.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
    let files = generate(&read("portable.spec")?, &machines).map_err(|error| error.to_string())?;
    let mut stale = Vec::new();
    for file in files {
        let path = root.join(&file.path);
        let text = if file.path.ends_with(".rs") { format_rust(&file.text)? } else { file.text };
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(file.path);
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
        }
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("out of date (run `cargo xtask codegen`): {}", stale.join(", ")))
    }
}

/// Runs rustfmt on `text`, so that checked-in files look like the rest of the repository.
fn format_rust(text: &str) -> Result<String, String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=120,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run rustfmt: {error}"))?;
    let mut input = child.stdin.take().ok_or("rustfmt has no input")?;
    let text = text.to_string();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|error| format!("cannot run rustfmt: {error}"))?;
    writer.join().map_err(|_| "the writer to rustfmt failed")?.map_err(|error| format!("cannot write: {error}"))?;
    if !output.status.success() {
        return Err("rustfmt refused a generated file".into());
    }
    String::from_utf8(output.stdout).map_err(|_| "rustfmt printed something that is not text".into())
}
