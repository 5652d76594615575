//! Compiles the decoder, which the examples of C share.

fn main() -> Result<(), quaject_build::Error> {
    quaject_build::compile("../slip.esp")
}
