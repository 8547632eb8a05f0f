//! Which program the kernel refused: only libbpf's messages name it.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

/// The program that was refused last.
static REFUSED: Mutex<Option<String>> = Mutex::new(None);

/// Listens to libbpf from now on, in all threads of the process. With
/// `FATHOM_LIBBPF` in the environment all that it says is passed on.
pub(crate) fn listen() {
    libbpf_rs::set_print(Some(if std::env::var_os("FATHOM_LIBBPF").is_some() {
        (PrintLevel::Debug, |_, message| {
            eprint!("{message}");
            note(&message);
        })
    } else {
        (PrintLevel::Warn, |_, message| note(&message))
    }));
}

/// The program that the kernel refused since this was last asked, if it was a
/// program that it refused.
pub(crate) fn take() -> Option<String> {
    REFUSED.lock().ok()?.take()
}

fn note(message: &str) {
    if let (Some(program), Ok(mut refused)) = (program(message), REFUSED.lock()) {
        *refused = Some(program.to_string());
    }
}

fn program(message: &str) -> Option<&str> {
    let (program, what) = message.split_once("prog '")?.1.split_once("': ")?;
    what.starts_with("failed to load:").then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_taken_out_of_the_message() {
        let refused = "libbpf: prog 'layer_start_commit': failed to load: -EACCES\n";
        assert_eq!(program(refused), Some("layer_start_commit"));
        let before = "libbpf: prog 'layer_start_commit': BPF program load failed: -EACCES\n";
        assert_eq!(program(before), None);
        assert_eq!(program("libbpf: failed to load object 'fathom'\n"), None);
    }
}
