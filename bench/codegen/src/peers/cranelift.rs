//! The workload on Cranelift: from the builder of functions to machine code, which is copied. Memory of contexts is
//! used again; making the code executable, which `cranelift-jit` adds, is left out.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, Signature, Type, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

use crate::{Kind, OPERATIONS};

/// How hard it tries.
#[derive(Debug, Clone, Copy)]
pub enum Effort {
    /// No optimisation, registers allocated in one pass: the quickest there is.
    SinglePass,
    /// All optimisations.
    Speed,
}

/// A compiler whose memory is used again.
pub struct Compiler {
    isa: OwnedTargetIsa,
    context: Context,
    builder: FunctionBuilderContext,
    control: ControlPlane,
}

impl Compiler {
    pub fn new(effort: Effort) -> Self {
        let mut flags = settings::builder();
        let (level, allocator) = match effort {
            Effort::SinglePass => ("none", "single_pass"),
            Effort::Speed => ("speed", "backtracking"),
        };
        for (name, value) in [("opt_level", level), ("regalloc_algorithm", allocator), ("enable_verifier", "false")] {
            flags.set(name, value).expect("Cranelift has this setting");
        }
        let isa = cranelift_native::builder().expect("this is a machine of Cranelift's");
        let isa = isa.finish(settings::Flags::new(flags)).expect("the settings are valid");
        Compiler {
            isa,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            control: ControlPlane::default(),
        }
    }

    fn function(
        &mut self,
        bytes: &mut [u8],
        parameters: &[Type],
        result: Option<Type>,
        write: impl FnOnce(&mut FunctionBuilder<'_>),
    ) -> usize {
        self.context.clear();
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params.extend(parameters.iter().map(|ty| AbiParam::new(*ty)));
        signature.returns.extend(result.map(AbiParam::new));
        self.context.func.signature = signature;
        let mut builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        write(&mut builder);
        builder.seal_all_blocks();
        builder.finalize(self.isa.frontend_config());
        let code = self.context.compile(&*self.isa, &mut self.control).expect("the workload is valid");
        let code = code.code_buffer();
        bytes[..code.len()].copy_from_slice(code);
        bytes.as_ptr() as usize
    }

    pub fn table(&mut self, bytes: &mut [u8]) -> usize {
        self.function(bytes, &[types::I64], None, |b| {
            let memory = b.block_params(b.current_block().expect("there is one"))[0];
            let flags = MemFlagsData::trusted();
            let registers: [Variable; 8] = std::array::from_fn(|_| b.declare_var(types::I32));
            for (index, register) in (0..).zip(registers) {
                let value = b.ins().load(types::I32, flags, memory, 4 * index);
                b.def_var(register, value);
            }
            for operation in std::hint::black_box(&OPERATIONS) {
                let (d, s) = (registers[operation.d as usize & 7], registers[operation.s as usize & 7]);
                let value = match operation.kind {
                    Kind::Load => b.ins().load(types::I32, flags, memory, operation.displacement),
                    Kind::Store => {
                        let value = b.use_var(d);
                        b.ins().store(flags, value, memory, operation.displacement);
                        continue;
                    }
                    Kind::Add | Kind::Sub | Kind::Xor => {
                        let (left, right) = (b.use_var(d), b.use_var(s));
                        match operation.kind {
                            Kind::Add => b.ins().iadd(left, right),
                            Kind::Sub => b.ins().isub(left, right),
                            Kind::Xor | Kind::Load | Kind::Store => b.ins().bxor(left, right),
                        }
                    }
                };
                b.def_var(d, value);
            }
            for (index, register) in (0..).zip(registers) {
                let value = b.use_var(register);
                b.ins().store(flags, value, memory, 4 * index);
            }
            b.ins().return_(&[]);
        })
    }

    pub fn plus1(&mut self, bytes: &mut [u8]) -> usize {
        self.function(bytes, &[types::I32], Some(types::I32), |b| {
            let x = b.block_params(b.current_block().expect("there is one"))[0];
            let sum = b.ins().iadd_imm_s(x, 1);
            b.ins().return_(&[sum]);
        })
    }

    pub fn dot(&mut self, bytes: &mut [u8]) -> usize {
        self.function(bytes, &[types::I64, types::I64, types::I64], Some(types::I32), |b| {
            let flags = MemFlagsData::trusted();
            let parameters = b.block_params(b.current_block().expect("there is one")).to_vec();
            let (again, done) = (b.create_block(), b.create_block());
            let (at, sum) = (b.declare_var(types::I64), b.declare_var(types::I32));
            let (start, zero) = (b.ins().iconst(types::I64, 0), b.ins().iconst(types::I32, 0));
            b.def_var(at, start);
            b.def_var(sum, zero);
            let end = b.ins().ishl_imm_s(parameters[2], 2);
            let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, end, 0);
            b.ins().brif(more, again, &[], done, &[]);
            b.switch_to_block(again);
            let offset = b.use_var(at);
            let [x, y] = [parameters[0], parameters[1]].map(|array| {
                let address = b.ins().iadd(array, offset);
                b.ins().load(types::I32, flags, address, 0)
            });
            let (product, so_far) = (b.ins().imul(x, y), b.use_var(sum));
            let value = b.ins().iadd(so_far, product);
            b.def_var(sum, value);
            let next = b.ins().iadd_imm_s(offset, 4);
            b.def_var(at, next);
            let more = b.ins().icmp(IntCC::SignedLessThan, next, end);
            b.ins().brif(more, again, &[], done, &[]);
            b.switch_to_block(done);
            let result = b.use_var(sum);
            b.ins().return_(&[result]);
        })
    }
}
