//! `qj` and programs that are elaborated before they are checked: standard modules, procedures, instances of templates.
//! The same program has the same output on every engine.

mod support;

use support::Folder;

/// Runs a program on every engine; the output and the status must be as given.
fn everywhere(files: &[(&str, &str)], status: i32, output: &str) {
    let folder = Folder::with(files);
    for engine in ["interp", "c", "jit"] {
        for mode in ["process", "auto"] {
            let run = folder.qj(&format!("run --engine {engine} --mode {mode} {}", files[0].0));
            let produced = run.output().expect("qj runs");
            let error = String::from_utf8_lossy(&produced.stderr).into_owned();
            let found = (produced.status.code(), String::from_utf8_lossy(&produced.stdout).into_owned());
            assert_eq!(found, (Some(status), output.to_string()), "{engine} {mode}: {error}");
        }
    }
}

/// The check values of the catalogue: the results for the bytes `123456789`.
#[test]
fn standard_checksums_have_their_check_values() {
    let program = "import \"std:checksum\";
        channel o(u32, u16, u16, u16, u16) external in = \"text:-\";
        process p {
          var data: bytes[<=9] = \"123456789\";
          var a: u32 = 0xffff_ffff, b: u16 = 0xffff, c: u16 = 0, d: u16 = 0xffff, e: u16 = 0xffff;
          for i in 0..9 {
            a = crc32(a, data[i]);
            b = crc16_modbus(b, data[i]);
            c = crc16_xmodem(c, data[i]);
            d = crc16_xmodem(d, data[i]);
            e = crc16_hdlc(e, data[i]);
          }
          out(o, ~a, b, c, d, ~e);
        }";
    let expected = format!("{} {} {} {} {}\n", 0xcbf4_3926u32, 0x4b37, 0x31c3, 0x29b1, 0x906e);
    everywhere(&[("a.esp", program)], 0, &expected);
}

/// A standard module between the imports does not change which folder a path is relative to.
#[test]
fn paths_are_relative_to_their_file_behind_a_standard_module() {
    let folder = Folder::with(&[("a.esp", "import \"std:checksum\"; import \"sub/b.esp\"; process P { out(o, C); }")]);
    std::fs::create_dir(folder.path("sub")).expect("a folder can be made");
    for (name, text) in [("b.esp", "import \"c.esp\";"), ("c.esp", "const C = 7; channel o(int) external in;")] {
        std::fs::write(folder.path("sub").join(name), text).expect("a file can be written");
    }
    folder.qj("check a.esp").assert().success();
}
