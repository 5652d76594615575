//! Pipes under valgrind: no byte is read that is not there or was never written. Valgrind knows no AVX-512, so this is
//! for the code of older processors, a slice of what `every.rs` runs between guard pages.

use std::process::Command;

use quaject_pipe::{Composer, Options, Store, cross, reference};
use quaject_test_support::{Effort, Random, tool};
use quaject_vcode::Features;

use crate::support::{fill, mixed_steps};

/// What runs under valgrind: buffers on the heap, exactly as long as they have to be.
#[test]
fn narrow_pipes_on_the_heap() {
    let all = Features::detect();
    #[cfg(target_arch = "x86_64")]
    let levels = {
        use quaject_vcode::x86_64::{AVX2, AVX512, VNNI, VPCLMUL};
        let narrow = all.without(AVX512 | VNNI | VPCLMUL);
        [narrow, narrow.without(AVX2), Features::NONE]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let levels = [all, Features::NONE];
    let composers = levels.map(Composer::with_features).into_iter().chain([cross::integer_composer(all)]);
    let composers: Vec<Composer> = composers.map(|composer| composer.expect("there is memory")).collect();
    let mut random = Random(0x5851_f42d_4c95_7f2d);
    for round in 0..Effort::wanted().pick(100, 1_000, 100_000) {
        let steps = mixed_steps(&mut random);
        let pipe = composers[round % composers.len()].compose(&steps).expect("the steps are a pipe");
        let mut data = vec![0; random.index(300)];
        fill(&mut random, &mut data);
        let key: Vec<u8> = data.iter().map(|byte| byte ^ 0x55).collect();
        let streams = vec![&key[..]; pipe.streams()];
        let mut target = Vec::with_capacity(data.len());
        target.resize(if pipe.writes() { data.len() } else { 0 }, 0);
        let options = Options { streams: &streams, store: Some(Store::ALL[random.index(3)]), ..Options::default() };
        let found = pipe.run_with(&data, &mut target, options).expect("the lengths are right");
        let mut expected = data.clone();
        assert_eq!(found, reference::run(&steps, &mut expected, &streams));
        assert!(!pipe.writes() || target == expected);
    }
}

#[test]
fn valgrind_sees_nothing_wrong() {
    let Some(valgrind) = tool(&["valgrind"]) else { return };
    let own = std::env::current_exe().expect("a test is a program");
    // Code memory is a file that is mapped twice, whose changes valgrind does not expect.
    let options = ["--quiet", "--error-exitcode=9", "--smc-check=all"];
    let mut command = Command::new(valgrind);
    command.args(options).arg(own).args(["--exact", "memory::narrow_pipes_on_the_heap", "--test-threads=1"]);
    let output = command.output().expect("valgrind starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it ran");
}
