//! `vcode-codegen ROOT [--check]`: writes what the specifications below ROOT generate, or reports what differs.

use std::path::Path;
use std::process::ExitCode;

use quaject_vcode_spec::{Source, Sources, generate};

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
    let sources = sources(&root.join("machines"))?;
    let files = generate(&sources).map_err(|error| error.to_string())?;
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

/// Reads `FOLDER/*.spec`, and `FOLDER/{ext,vectors,system}/*.spec`: those named like a machine extend it.
fn sources(folder: &Path) -> Result<Sources, String> {
    let read = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        std::fs::read_to_string(path)
            .map(|text| Source { name, text })
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(|error| format!("cannot list: {error}")))
        .collect::<Result<Vec<_>, String>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "spec"));
    paths.sort();
    let mut sources = Sources::default();
    for layer in ["portable.spec", "extensions.spec", "vectors.spec"] {
        let path = folder.join(layer);
        paths.retain(|own| *own != path);
        sources.portable.push(read(&path)?);
    }
    for path in paths {
        let mut files = vec![read(&path)?];
        for layer in ["ext", "vectors", "system"] {
            let more = folder.join(layer).join(path.file_name().unwrap_or_default());
            if more.exists() {
                files.push(read(&more)?);
            }
        }
        sources.machines.push(files);
    }
    Ok(sources)
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
