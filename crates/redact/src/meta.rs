//! `session.json`. Every struct is taken apart, so that a member that is added has to be judged here.

use fathom_model::meta::{
    Clock, CountedFunction, History, Hook, Host, ImportSource, Keep, LibraryBudget, Options,
    PerfCounter, RecordedLayer, Save, SessionMeta,
};
use fathom_model::tables::Holds;

use crate::rules::{Action, Key, Rules};
use crate::secrets;
use crate::text::Redactor;

/// Filters and options whose values are numbers or words of fathom.
const PLAIN: [&str; 20] = [
    "--budget",
    "--counters",
    "--duration",
    "--file-type",
    "--function",
    "--keep",
    "--layers",
    "--library-budget",
    "--min-duration",
    "--otel-context",
    "--no-tls",
    "--pid",
    "--preserve-env",
    "--rows",
    "--sample",
    "--slower-than",
    "--spans",
    "--stacks",
    "--tid",
    "--errors-only",
];
/// Filters that select tasks: they are the target if no command is.
const TASKS: [&str; 6] = [
    "--pid",
    "--tid",
    "--comm",
    "--uid",
    "--cgroup",
    "--container",
];

/// The name of a host in a copy that [`crate::redact`] makes with these rules and this key.
pub fn redacted_host(host: &Host, rules: &Rules, key: &Key) -> String {
    let redactor = Redactor::new(rules.clone(), key.clone());
    redactor.host(host.clone()).name
}

impl Redactor {
    /// The metadata of a copy.
    pub(crate) fn meta(&self, meta: &SessionMeta) -> SessionMeta {
        let SessionMeta {
            schema_version,
            fathom_version,
            id,
            state,
            command,
            target,
            options,
            host,
            labels,
            clock,
            hooks,
            layers,
            totals,
            rows,
            exit_status,
            cost,
            content,
            spans,
            library_budget,
            perf_counters,
            source,
            // Their columns are the user's: no rule says what they hold.
            own_tables: _,
            history,
        } = meta.clone();
        let options = self.options(options);
        let labels = labels
            .into_iter()
            .filter_map(|(key, value)| Some((key, self.by(self.rules.label, &value)?)));
        SessionMeta {
            schema_version,
            fathom_version,
            id,
            state,
            command: match self.rules.command {
                Action::Drop => Vec::new(),
                _ => self.command(&command),
            },
            target: match target.as_str() {
                "" | "--all" => target,
                _ => target_of(&options.filters),
            },
            options,
            host: self.host(host),
            labels: labels.collect(),
            clock: {
                let Clock {
                    start_monotonic_ns: _,
                    start_realtime_ns: _,
                    end_monotonic_ns: _,
                    end_realtime_ns: _,
                    wall_error_ns: _,
                } = clock;
                clock
            },
            hooks: hooks.into_iter().map(|hook| self.hook(hook)).collect(),
            layers: layers.into_iter().map(|layer| self.layer(layer)).collect(),
            totals,
            rows,
            exit_status,
            cost,
            content,
            spans,
            library_budget: library_budget.map(|budget| self.library_budget(budget)),
            perf_counters: perf_counters.into_iter().map(|c| self.counter(c)).collect(),
            source: source.map(|source| self.source(source)),
            own_tables: Default::default(),
            history: self.history(history),
        }
    }

    /// A text by an action for texts without a column.
    fn by(&self, action: Action, text: &str) -> Option<String> {
        match action {
            Action::Drop => None,
            Action::Hash => Some(self.whole(text)),
            Action::Keep => Some(secrets::mask_random(text).into_owned()),
        }
    }

    fn options(&self, options: Options) -> Options {
        let Options {
            detail,
            syscalls,
            ring_mib,
            filters,
            other,
            tail,
        } = options;
        let given = |words: Vec<String>| words.iter().map(|word| self.option(word)).collect();
        Options {
            detail,
            syscalls,
            ring_mib,
            filters: given(filters),
            other: given(other),
            tail,
        }
    }

    fn library_budget(&self, budget: LibraryBudget) -> LibraryBudget {
        let LibraryBudget {
            calls_per_second,
            counted,
        } = budget;
        let counted = counted.into_iter().map(|counted| {
            let CountedFunction {
                class,
                function,
                library,
                at_ns,
                calls,
                in_ns,
            } = counted;
            CountedFunction {
                class,
                function: self.text(Holds::Symbol, &function).unwrap_or_default(),
                library: self.text(Holds::Path, &library).unwrap_or_default(),
                at_ns,
                calls,
                in_ns,
            }
        });
        LibraryBudget {
            calls_per_second,
            counted: counted.collect(),
        }
    }

    /// An option with its value: `--path /x`.
    fn option(&self, given: &str) -> String {
        let Some((name, value)) = given.split_once(' ') else {
            return match given.starts_with("--") {
                true => given.to_owned(),
                false => self.whole(given),
            };
        };
        if PLAIN.contains(&name) {
            return given.to_owned();
        }
        let (not, value) = match value.strip_prefix('!') {
            Some(value) => ("!", value),
            None => ("", value),
        };
        let value = match name {
            "--path" | "--cgroup" => self.text(Holds::Path, value),
            "--comm" => self.text(Holds::Name, value),
            "--container" => self.text(Holds::Host, value),
            "--uid" if value.bytes().all(|b| b.is_ascii_digit()) => Some(value.to_owned()),
            "--uid" | "--user" => self.by(self.rules.user, value),
            "--share" if value == "all" => Some(value.to_owned()),
            "--share" => self.by(self.rules.user, value),
            "--library" => {
                let libraries = value.split(',').map(|library| match library.contains('/') {
                    true => self.text(Holds::Path, library).unwrap_or_default(),
                    false => library.to_owned(),
                });
                Some(libraries.collect::<Vec<_>>().join(","))
            }
            // --save-when, and options of later versions.
            _ => self.text(Holds::Query, value),
        };
        format!("{name} {not}{}", value.unwrap_or_default())
    }

    fn host(&self, host: Host) -> Host {
        let Host {
            name,
            kernel,
            arch,
            cpus,
            memory_bytes,
            distribution,
            machine_id,
            boot_id,
        } = host;
        let id = |id: String| match self.rules.host {
            _ if id.is_empty() => id,
            Action::Drop => String::new(),
            Action::Hash => self.key.id(&id),
            Action::Keep => id,
        };
        Host {
            name: self.text(Holds::Host, &name).unwrap_or_default(),
            kernel,
            arch,
            cpus,
            memory_bytes,
            distribution,
            machine_id: id(machine_id),
            boot_id: id(boot_id),
        }
    }

    fn hook(&self, hook: Hook) -> Hook {
        let Hook {
            name,
            attached,
            note,
            skipped,
        } = hook;
        Hook {
            name: self.prose(&name),
            attached,
            note: self.prose(&note),
            skipped,
        }
    }

    fn layer(&self, layer: RecordedLayer) -> RecordedLayer {
        let RecordedLayer {
            name,
            recorded,
            reason,
        } = layer;
        RecordedLayer {
            name,
            recorded,
            reason: self.prose(&reason),
        }
    }

    fn counter(&self, counter: PerfCounter) -> PerfCounter {
        let PerfCounter {
            name,
            counted,
            note,
        } = counter;
        PerfCounter {
            name,
            counted,
            note: self.prose(&note),
        }
    }

    fn source(&self, source: ImportSource) -> ImportSource {
        let ImportSource {
            format,
            files,
            lines,
            bad_lines,
            other_calls,
            not_observable,
        } = source;
        let files = files.iter().filter_map(|file| self.text(Holds::Path, file));
        ImportSource {
            format,
            files: files.collect(),
            lines,
            bad_lines,
            other_calls,
            not_observable: not_observable.iter().map(|text| self.prose(text)).collect(),
        }
    }

    fn history(&self, history: History) -> History {
        let History {
            keep,
            saves,
            saved_because,
            saved_from,
            repairs,
            redacted: _,
        } = history;
        let keep = keep.map(|keep| {
            let Keep {
                time_ns: _,
                bytes: _,
                complete_from_ns: _,
            } = keep;
            keep
        });
        // A condition is SQL of the user.
        let because = |text: &str| match text {
            "" | "signal" => Some(text.to_owned()),
            text => self.text(Holds::Query, text),
        };
        let save = |save: Save| {
            let Save {
                path,
                because: why,
                at_ns,
                error,
            } = save;
            Save {
                path: self.text(Holds::Path, &path).unwrap_or_default(),
                because: because(&why).unwrap_or_default(),
                at_ns,
                error: error.map(|error| self.prose(&error)),
            }
        };
        History {
            keep,
            saves: saves.into_iter().map(save).collect(),
            saved_because: because(&saved_because).unwrap_or_default(),
            saved_from,
            repairs: repairs.iter().map(|repair| self.prose(repair)).collect(),
            redacted: self.rules.in_words(),
        }
    }

    /// Text of fathom. It ends at the first path, whose end nothing marks.
    fn prose(&self, text: &str) -> String {
        let begins = |at: &usize| {
            let before = text.get(..*at).unwrap_or_default();
            !before.ends_with(|c: char| c.is_alphanumeric() || "_-.<>/".contains(c))
        };
        let path = text.match_indices('/').map(|(at, _)| at).find(begins);
        let plain = path.and_then(|at| text.get(..at));
        match plain.filter(|_| self.rules.path != Action::Keep) {
            Some(plain) => format!("{plain}{}", secrets::GONE),
            None => secrets::mask_random(text).into_owned(),
        }
    }
}

/// The target in words, from the filters of which it consists.
fn target_of(filters: &[String]) -> String {
    let words = filters.iter().filter_map(|filter| {
        let (name, value) = filter.split_once(' ')?;
        match name {
            "--pid" => Some(format!("-p {value}")),
            name => TASKS.contains(&name).then(|| filter.clone()),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Key, Rules};

    /// Puts `alice` into every text of `session.json` that is not a word of fathom.
    #[test]
    fn no_member_keeps_a_text_of_the_host() {
        let alice = || "alice".to_owned();
        let mut meta = fathom_testkit::meta();
        meta.command = vec!["/home/alice/x".into(), "--password=alice".into(), alice()];
        meta.target = "--comm alice -p 12".into();
        meta.options.filters = [
            "--comm alice",
            "--path !/home/alice",
            "--uid alice",
            "--pid 12",
        ]
        .map(str::to_owned)
        .to_vec();
        meta.options.other = [
            "--user alice",
            "--library /home/alice/l.so:f,posix",
            "--save-when path = 'alice'",
            "--share alice",
            "--durable",
        ]
        .map(str::to_owned)
        .to_vec();
        meta.host.name = alice();
        meta.host.machine_id = alice();
        meta.host.boot_id = alice();
        meta.labels = [("owner".to_owned(), alice())].into();
        meta.hooks = vec![Hook {
            name: "uprobe:/home/alice/l.so:f".into(),
            attached: false,
            note: "cannot open '/home/alice/l.so': gone".into(),
            skipped: 0,
        }];
        meta.source = Some(ImportSource {
            files: vec!["/home/alice/log".into()],
            ..ImportSource::default()
        });
        meta.history.saves = vec![Save {
            path: "/home/alice/save.fathom".into(),
            because: "path = 'alice'".into(),
            at_ns: 1,
            error: Some("cannot create /home/alice: exists".into()),
        }];
        meta.history.saved_because = "comm = 'alice'".into();
        meta.history.repairs = vec!["left out /home/alice".into()];
        let before = serde_json::to_string(&meta).unwrap();
        assert_eq!(before.matches("alice").count(), 23);
        let redactor = Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap());
        let redacted = redactor.meta(&meta);
        let after = serde_json::to_string(&redacted).unwrap();
        assert!(!after.contains("alice"), "{after}");
        let word = |text: &str| redactor.key.word(text);
        assert_eq!(
            redacted.target,
            format!("--comm {0} --uid {0} -p 12", word("alice"))
        );
        assert_eq!(redacted.options.filters[3], "--pid 12");
        assert_eq!(redacted.options.other[4], "--durable");
        assert_eq!(
            redacted.options.leave_calls_out(),
            meta.options.leave_calls_out()
        );
    }
}
