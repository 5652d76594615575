//! The heap of this process, of which the system says what it is made of.

fn main() {
    // One test, without a harness's threads: those have heaps of their own.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    match std::env::args().nth(1).as_deref() {
        Some("limited") => heap::serves_all_the_same(),
        _ => {
            heap::of_a_limited_process();
            heap::begins_with_huge_pages();
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod heap {
    use quaject_pages::{HUGE, heap_in_huge_pages};
    use std::hint::black_box;

    /// What `/proc/self/smaps` says of the memory that something is in.
    fn memory_of(address: usize) -> (std::ops::Range<usize>, String) {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system tells");
        let mut all: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for line in maps.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            let ends = first.split_once('-').map(|(low, high)| [low, high].map(|end| usize::from_str_radix(end, 16)));
            match (ends, all.last_mut()) {
                (Some([Ok(low), Ok(high)]), _) => all.push((low..high, String::new())),
                (_, Some((_, text))) => text.push_str(&format!("{line}\n")),
                (_, None) => {}
            }
        }
        all.into_iter().find(|(range, _)| range.contains(&address)).expect("it is in some memory")
    }

    /// Where a process may not have so much, it goes on with what it may have.
    pub(crate) fn of_a_limited_process() {
        let own = std::env::current_exe().expect("this is a program");
        for limit in ["-d 4000", "-d 12000", "-v 24000"] {
            let mut shell = std::process::Command::new("sh");
            let status = shell.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" limited")).arg(&own).status();
            assert!(status.expect("there is a shell").success(), "{limit}");
        }
    }

    pub(crate) fn serves_all_the_same() {
        heap_in_huge_pages(64 * HUGE);
        let kept: Vec<Vec<u8>> = (0..100).map(|index| vec![index; 10_000]).collect();
        assert!(kept.iter().zip(0..).all(|(bytes, index)| bytes.iter().all(|byte| *byte == index)));
    }

    pub(crate) fn begins_with_huge_pages() {
        let bytes = 8 * HUGE;
        heap_in_huge_pages(bytes);
        // Small and large, until more is used than was asked for.
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for index in 0..3 * bytes / HUGE {
            kept.push(vec![index as u8; if index % 2 == 0 { HUGE / 2 } else { 100 }]);
        }
        let (range, text) = memory_of(kept[1].as_ptr() as usize);
        assert!(range.start.is_multiple_of(HUGE) && range.len() == bytes, "{range:x?}");
        let flags = text.lines().find(|line| line.starts_with("VmFlags:")).expect("flags");
        // A system without huge pages says nothing of them.
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            assert!(flags.split(' ').any(|flag| flag == "hg"), "{flags}");
        }
        assert!(kept.iter().enumerate().all(|(index, bytes)| bytes.iter().all(|byte| *byte == index as u8)));
        // What is given back is used again.
        let address = |byte: u8| {
            let given = black_box(vec![byte; HUGE]);
            given.as_ptr() as usize
        };
        assert_eq!(address(1), address(2));
    }
}
