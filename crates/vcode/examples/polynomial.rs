//! A compiler of polynomials: writes the function `x -> c0 + c1 x + c2 x^2 ..` as machine code by Horner's rule, and
//! calls it. `cargo run -p quaject-vcode --example polynomial`

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn main() -> Result<(), quaject_vcode::Error> {
    use quaject_vcode::{Asm, Class, Core, Kind, Memory, Native, Param, Workspace};

    let coefficients = [7_i64, 0, -3, 2];
    let memory = Memory::new(4096)?;
    let mut workspace = Workspace::<Native>::new();
    let mut parameters = [Param::NONE];
    let mut asm = Asm::begin(memory.region(4096)?, &mut workspace, "%l", &mut parameters, Kind::Leaf)?;
    let x = parameters[0].reg();
    let (sum, coefficient) = (asm.getreg(Class::Temporary)?, asm.getreg(Class::Temporary)?);
    asm.setl(sum, 0);
    for value in coefficients.iter().rev() {
        asm.mull(sum, sum, x);
        asm.setl(coefficient, *value);
        asm.addl(sum, sum, coefficient);
    }
    asm.retl(sum);
    let code = asm.end()?;
    // SAFETY: the code takes a long and returns a long, and `memory` outlives the calls.
    let polynomial: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(code.entry) };
    for x in -2..=2 {
        let expected: i64 = (0_u32..).zip(coefficients).map(|(power, value)| value * i64::from(x).pow(power)).sum();
        assert_eq!(polynomial(x.into()), expected);
        println!("p({x}) = {expected}, by {} bytes of code", code.length);
    }
    Ok(())
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
fn main() {
    println!("this machine has no emitters that can be executed");
}
