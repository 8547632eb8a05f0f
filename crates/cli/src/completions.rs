//! `fathom completions` and `fathom man-pages`: files that are made from the definitions of the
//! options.

use std::fs;
use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Arguments, CompletionsArgs, ManPagesArgs};
use crate::exit::Failure;

/// Prints a completion script and returns the exit status.
pub fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "fathom", &mut script);
    // A pipe whose reader has gone is not a defect: `generate` would panic.
    let mut out = std::io::stdout();
    out.write_all(&script).map_err(Failure::input)?;
    Ok(0)
}

/// Writes the man pages and returns the exit status.
pub fn man_pages(args: &ManPagesArgs) -> Result<u8, Failure> {
    let failed = || format!("cannot write man pages to {}", args.dir.display());
    fs::create_dir_all(&args.dir)
        .with_context(failed)
        .map_err(Failure::input)?;
    clap_mangen::generate_to(Arguments::command(), &args.dir)
        .with_context(failed)
        .map_err(Failure::input)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::*;

    fn commands() -> Vec<String> {
        let all = Arguments::command();
        let shown = all.get_subcommands().filter(|c| !c.is_hide_set());
        shown.map(|c| c.get_name().to_string()).collect()
    }

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let pages = ManPagesArgs {
            dir: dir.path().join("man1"),
        };
        man_pages(&pages).map_err(|e| e.to_string()).unwrap();
        let page = |name: &str| fs::read_to_string(pages.dir.join(name)).unwrap();
        let commands = commands();
        assert!(commands.len() > 10, "{commands:?}");
        for command in &commands {
            let text = page(&format!("fathom-{command}.1"));
            assert!(text.contains(".SH SYNOPSIS"), "{command}");
            assert!(page("fathom.1").contains(&command.replace('-', "\\-")));
        }
        // The program and its commands, nothing hidden.
        let count = fs::read_dir(&pages.dir).unwrap().count();
        assert!(count <= commands.len() + 2, "{count}");
    }

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "fathom", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in commands() {
                assert!(script.contains(&command), "{shell} {command}");
            }
            assert!(script.contains("min-duration"), "{shell}");
        }
    }
}
