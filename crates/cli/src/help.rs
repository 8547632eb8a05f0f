//! The parts of the help that list things. They are made from the definitions, so that the help
//! cannot miss an item.

use fathom_model::layers::{Layer, LayerSet};
use fathom_model::perf_counters::PERF_COUNTERS;
use fathom_model::protocols::Protocol;
use fathom_model::syscalls::Class;
use fathom_probe::{Filters, Selection, usual_layers};

/// `a, b and c`.
fn list<'a>(names: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Help of `record --syscalls`.
pub fn syscalls() -> String {
    let classes = Class::ALL.map(Class::name).join(", ");
    format!(
        "Calls, and operations of io_uring and AIO, to record: names, classes ({classes}), \
         `storage` (every call on files and directories, without classes socket and wait), or `all` \
         (every call, also reads, writes, and similar calls on sockets, pipes, and anonymous inodes); \
         words add up, !NAME excludes. `fathom doctor --syscalls` lists them"
    )
}

/// Help of `record --layers`.
pub fn layers() -> String {
    let usual = Selection::parse::<&str>(&[]).map(|all| usual_layers(&all));
    let usual = usual.unwrap_or(LayerSet::chosen());
    let layers: Vec<_> = Layer::chosen()
        .map(|layer| {
            let asked = if usual.has(layer) {
                ""
            } else {
                "; off by default"
            };
            format!("{} ({}{asked})", layer.name(), layer.what())
        })
        .collect();
    format!(
        "Layers to record: syscall (always), {}; or `all` [default: {}; without pagecache \
         if --syscalls excludes mmap]",
        layers.join(", "),
        usual.names()
    )
}

/// Help of `record --counters`.
pub fn counters() -> String {
    let of = |hardware| {
        let counters = PERF_COUNTERS.iter();
        let names = counters.filter(move |c| c.hardware == hardware);
        names.map(|c| c.name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "perf counters to read per call, at most {}: {} (if the processor counts \
         them); {}",
        fathom_model::abi::MAX_COUNTERS,
        of(true),
        of(false)
    )
}

/// Help of `record --usdt`.
pub fn usdt() -> String {
    format!(
        "Times between static probes of programs (USDT) to record as spans: {}, one kind of their \
         spans (postgresql:query), `all`, or PROVIDER:BEGIN/END with the names of two probes, and \
         @N behind them if argument N of the first is a text that names the span",
        fathom_model::usdt::providers().join(", ")
    )
}

/// Help of `record --library`.
pub fn library() -> String {
    format!(
        "Calls of libraries to record: {}, `all`, or LIBRARY:FUNCTION (libfoo.so:foo_read, \
         /opt/foo/bin/foo:foo_read). Costs about 2 µs per call, 0.1 µs with --library-by preload; with \
         uprobes other programs that use the library pay a part of it",
        fathom_model::library::classes().join(", ")
    )
}

/// Help of `record --spans`.
pub fn spans() -> String {
    format!(
        "Requests to record as spans, found in what the processes send and receive on stream \
         sockets: {}, or all. Also records the calls of class socket",
        Protocol::ALL.map(Protocol::name).join(", ")
    )
}

/// Help of `--file-type`.
pub fn file_types() -> String {
    let types = Filters::type_names().collect::<Vec<_>>().join(", ");
    format!("Only calls on files of a type: {types}; '!directory' excludes")
}

/// Help of `top --sort`.
pub fn sort() -> String {
    let columns = fathom_top::Column::ALL.map(|column| column.option());
    format!("Column to sort by: {}", columns.join(", "))
}

/// Help of `import --format`.
pub fn import_formats() -> String {
    let names = fathom_import::Format::ALL.iter().map(|f| f.name());
    format!(
        "Format of the log: {} [default: detected]",
        list(names, "or")
    )
}

#[cfg(feature = "analysis")]
pub use analysis::*;

#[cfg(feature = "analysis")]
mod analysis {
    use fathom_query::escape::wrap;

    use super::list;

    /// Below the help of `query`.
    pub fn relations() -> String {
        let tables = fathom_model::tables::TABLES.iter().map(|table| table.name);
        let mut text = wrapped("Tables:", tables);
        text.push_str(&wrapped("Views:", fathom_query::view_names()));
        text.push_str(&format!("Function: {}.\n", fathom_query::PATH_FORMS));
        text.push_str(
            "`fathom query SESSION 'DESCRIBE by_file'` lists columns; docs/schema.md explains them.
A statement can read only this session and cannot write.",
        );
        text
    }

    /// A title and names, in lines that fit a terminal.
    fn wrapped<'a>(title: &str, names: impl Iterator<Item = &'a str>) -> String {
        let names: Vec<&str> = names.collect();
        wrap(&format!("{title} {}.", names.join(", ")), 80).join("\n") + "\n"
    }

    /// Help of `--format` of `query` and `zoom`.
    pub fn result_formats() -> String {
        let names = fathom_query::output::Format::ALL.map(|format| match format.name() {
            "arrow" => "arrow (IPC stream)",
            name => name,
        });
        format!("Output format: {}", list(names, "or"))
    }

    /// Help of `--exact`.
    pub const EXACT: &str = "With CSV: write text unchanged. Without it, control characters are written as \
         \\xHH, and text that a spreadsheet would run as a formula gets a leading apostrophe";

    /// Forms of `--from` and `--until`.
    pub const TIMES: &str = "Times: 2 (seconds), 1.5s, 250ms, 10us since the start of the \
         recording;\n2026-01-31T12:00:05.25Z; @NANOSECONDS, a value of column ts_ns.";

    /// Below the help of `export`.
    pub fn export_formats() -> String {
        let mut text = "Formats:\n".to_string();
        for format in fathom_export::Format::ALL {
            text.push_str(&format!("  {:<13} {}\n", format.name(), format.what()));
        }
        text + "\n" + TIMES
    }

    /// Help of `diff --metric`.
    pub fn metrics() -> String {
        let names = fathom_diff::Metric::GUARDS.map(fathom_diff::Metric::name);
        format!(
            "Guarded metrics: {} [default: all; time and p99 only with three or more \
             sessions per side]",
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Arguments;

    /// The output of `fathom COMMAND --help`, its lines joined.
    fn help_of(command: &str) -> String {
        let mut all = Arguments::command();
        let command = all.find_subcommand_mut(command).unwrap();
        let text = command.render_long_help().to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Whether `help` has `word`, not merely as a piece of another one.
    fn has_word(help: &str, word: &str) -> bool {
        let piece = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        help.match_indices(word).any(|(at, _)| {
            let (before, behind) = (&help[..at], &help[at + word.len()..]);
            !before.ends_with(piece) && !behind.starts_with(piece)
        })
    }

    #[test]
    fn record_lists_every_layer_and_its_default() {
        use fathom_model::layers::{Layer, LayerSet};
        use fathom_probe::{Selection, usual_layers};
        let help = help_of("record");
        let from = help.find("Layers to record:").unwrap();
        let help = &help[from..from + help[from..].find("excludes mmap]").unwrap()];
        let (list, default) = help.split_once("[default: ").unwrap();
        for layer in Layer::chosen() {
            let (name, what) = (layer.name(), layer.what());
            assert!(list.contains(&format!("{name} ({what}")), "{name}");
        }
        let (default, _) = default.split_once("; ").unwrap();
        let default = LayerSet::parse(&[default.to_string()]).unwrap();
        let usual = usual_layers(&Selection::parse::<&str>(&[]).unwrap());
        assert_eq!(default, usual);
        assert!(!default.has(Layer::Vfs) && list.contains("page cache; off by default)"));
    }

    #[test]
    fn record_lists_classes_counters_and_types() {
        let help = help_of("record");
        let classes = fathom_model::syscalls::Class::ALL.map(|class| class.name());
        let counters = fathom_model::perf_counters::PERF_COUNTERS
            .iter()
            .map(|c| c.name);
        let types = fathom_probe::Filters::type_names();
        let libraries = fathom_model::library::classes().into_iter();
        for word in classes
            .into_iter()
            .chain(counters)
            .chain(types)
            .chain(libraries)
        {
            assert!(has_word(&help, word), "{word}");
        }
    }

    #[cfg(feature = "analysis")]
    #[test]
    fn query_lists_every_table_and_view() {
        let help = help_of("query");
        let views = fathom_query::view_names();
        let tables = fathom_model::tables::TABLES.iter().map(|table| table.name);
        let mut count = 0;
        for name in views.chain(tables).chain(["findings"]) {
            assert!(has_word(&help, name), "{name}");
            count += 1;
        }
        assert!(count > 35, "{count}");
    }

    /// All take the same forms, which [`fathom_export::parse_time`] reads.
    #[cfg(feature = "analysis")]
    #[test]
    fn commands_with_a_window_say_which_times_they_take() {
        let times: Vec<&str> = super::TIMES.split_whitespace().collect();
        let mut found = Vec::new();
        for command in Arguments::command().get_subcommands() {
            let arg = |name: &str| command.get_arguments().find(|a| a.get_id() == name);
            let (Some(_), Some(until)) = (arg("from"), arg("until")) else {
                continue;
            };
            let name = command.get_name();
            assert!(help_of(name).contains(&times.join(" ")), "{name}");
            let aliases = until.get_visible_aliases().unwrap_or_default();
            assert!(aliases.contains(&"to"), "{name}");
            found.push(name.to_owned());
        }
        found.sort();
        assert_eq!(found, ["critical-path", "export", "why", "zoom"]);
    }

    #[cfg(feature = "analysis")]
    #[test]
    fn formats_are_listed_where_they_can_be_chosen() {
        for command in ["query", "zoom"] {
            for format in fathom_query::output::Format::ALL {
                assert!(
                    has_word(&help_of(command), format.name()),
                    "{command} {format:?}"
                );
            }
        }
        for format in fathom_export::Format::ALL {
            assert!(has_word(&help_of("export"), format.name()), "{format:?}");
        }
        for format in fathom_import::Format::ALL {
            assert!(has_word(&help_of("import"), format.name()), "{format:?}");
        }
        for metric in fathom_diff::Metric::GUARDS {
            assert!(has_word(&help_of("diff"), metric.name()), "{metric:?}");
        }
    }
}
