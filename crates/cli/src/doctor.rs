//! `fathom doctor`: which features of the recorder this machine supports.

use fathom_model::layers::LayerSet;
use std::fs;
use std::path::Path;

use fathom_model::meta::Hook;
use fathom_model::syscalls::SYSCALLS;
use fathom_probe::{
    Content, Detail, Filters, KernelFunctions, LAYER_VFS, PerfCounters, Preload, Probe,
    ProbeOptions, Selection, Wanted, missing_privilege, perf_counters_here,
};

use crate::args::DoctorArgs;
use crate::exit::Failure;

/// One line of the output.
struct Check {
    ok: bool,
    what: String,
    found: String,
    /// If the feature is missing: the consequences and how to enable it. If it is present: the cost
    /// of not having a better variant.
    advice: String,
}

impl Check {
    fn mark(&self) -> &'static str {
        match (self.ok, self.advice.is_empty()) {
            (false, _) => "MISSING",
            (true, true) => "ok     ",
            (true, false) => "limited",
        }
    }
}

/// Runs `doctor`; the exit status is 0 if calls can be recorded and 1 if something is missing.
pub fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let mut text = String::new();
    if args.syscalls {
        for call in &SYSCALLS {
            let here = if call.number().is_some() {
                ""
            } else {
                "  (not on this architecture)"
            };
            text.push_str(&format!("{:<26} {}{here}\n", call.name, call.class.name()));
        }
        out.write_all(text.as_bytes()).map_err(Failure::input)?;
        return Ok(0);
    }
    let checks = checks();
    let fine = checks.iter().all(|check| check.ok);
    let best = checks.iter().all(|check| check.advice.is_empty());
    for check in &checks {
        text.push_str(&format!(
            "{}  {:<34} {}\n",
            check.mark(),
            check.what,
            check.found
        ));
        for line in check.advice.lines() {
            text.push_str(&format!("         {line}\n"));
        }
    }
    text.push_str(match (fine, best) {
        (false, _) => "\nRecordings lack the features marked MISSING above.\n",
        (true, true) => "\nThis machine supports every feature of fathom.\n",
        (true, false) => {
            "\nFeatures marked limited cost the recorded program more or record less, as noted above.\n"
        }
    });
    out.write_all(text.as_bytes()).map_err(Failure::input)?;
    Ok(u8::from(!fine))
}

/// The advice, if the feature is missing.
fn unless(there: bool, advice: &str) -> String {
    if there { String::new() } else { advice.into() }
}

fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    let host = fathom_recorder::describe_host();
    checks.push(Check {
        ok: true,
        what: "kernel".into(),
        found: format!("{} ({}), {} CPUs", host.kernel, host.arch, host.cpus),
        advice: String::new(),
    });
    let btf = Path::new("/sys/kernel/btf/vmlinux");
    checks.push(Check {
        ok: btf.exists(),
        what: "BTF (the kernel's type information)".into(),
        found: fs::metadata(btf).map_or_else(
            |e| e.to_string(),
            |meta| format!("{} KiB", meta.len() / 1024),
        ),
        advice: unless(
            btf.exists(),
            "fathom cannot record without BTF: use a kernel built with \
             CONFIG_DEBUG_INFO_BTF=y, Linux 5.8 or newer.",
        ),
    });
    let jit = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let jit = jit.trim();
    checks.push(Check {
        ok: jit != "0",
        what: "eBPF compiler (JIT)".into(),
        found: if jit.is_empty() {
            "always on".into()
        } else {
            format!("bpf_jit_enable = {jit}")
        },
        advice: unless(
            jit != "0",
            "Without the JIT every recorded call costs microseconds more: \
             sysctl net.core.bpf_jit_enable=1",
        ),
    });
    let privilege = missing_privilege();
    checks.push(Check {
        ok: privilege.is_none(),
        what: "permission to record".into(),
        found: privilege.as_ref().map_or_else(
            || "yes".into(),
            |p| format!("{} missing", p.capabilities.join(", ")),
        ),
        advice: privilege.map_or_else(String::new, |p| p.to_string()),
    });
    if checks
        .iter()
        .any(|check| !check.ok && check.what.starts_with("permission"))
    {
        return checks;
    }
    let options = ProbeOptions {
        detail: Detail::Full,
        layers: LayerSet::chosen(),
        selection: Selection::storage(),
        ring_mib: 1,
        all_tasks: false,
        follow: true,
        content: Content::None,
        content_max: 0,
        spans: 0,
        tls: false,
        filters: Filters::none(),
        counters: false,
        tail: false,
        stacks: false,
        functions: KernelFunctions::default(),
        library: Wanted::default(),
        preload: Preload::default(),
        usdt: Vec::new(),
        usdt_files: Vec::new(),
        contexts: false,
        library_budget: None,
        perf_counters: PerfCounters::default(),
    };
    match Probe::load(&options).and_then(|mut probe| probe.attach().map(|()| probe)) {
        Ok(probe) => {
            checks.extend(probe.hooks().iter().map(of_hook));
        }
        Err(error) => checks.push(Check {
            ok: false,
            what: "eBPF programs".into(),
            found: "refused".into(),
            advice: error.to_string(),
        }),
    }
    // For the verifier these are other programs than those without content.
    let options = ProbeOptions {
        content: Content::Hash,
        content_max: 1 << 20,
        spans: 1024,
        ..options
    };
    let content = Probe::load(&options).err();
    checks.push(Check {
        ok: content.is_none(),
        what: "content of calls (--content)".into(),
        found: if content.is_none() {
            "loaded".into()
        } else {
            "refused".into()
        },
        advice: content.map_or_else(String::new, |error| error.to_string()),
    });
    checks.push(libraries(options.clone()));
    checks.push(stacks(options));
    checks.push(counters());
    checks.push(Check {
        ok: true,
        what: "memory of a recording".into(),
        found: format!(
            "at most {} MiB plus the rings (--ring-mib)",
            fathom_recorder::MEMORY_BYTES >> 20
        ),
        advice: String::new(),
    });
    checks.push(Check {
        ok: cfg!(feature = "analysis"),
        what: "reports and SQL (DuckDB)".into(),
        found: if cfg!(feature = "analysis") {
            "built in".into()
        } else {
            "not built in".into()
        },
        advice: unless(
            cfg!(feature = "analysis"),
            "This binary can only record: read sessions with a full build of fathom.",
        ),
    });
    checks
}

/// The state of an attach point. Functions come and go with kernel versions, and many kernels do
/// not allow programs to attach to functions. Without one, fathom cannot separate a part of the
/// requests' time; everything else is recorded.
fn of_hook(hook: &Hook) -> Check {
    let is_place = hook.name.contains('/');
    let is_function = hook.name == LAYER_VFS
        || ["fentry/", "fexit/"]
            .iter()
            .any(|kind| hook.name.starts_with(kind));
    Check {
        ok: hook.attached || is_function,
        what: format!("{}{}", if is_place { "hook " } else { "" }, hook.name),
        found: match (hook.attached, is_place) {
            (true, true) => "attached".into(),
            (true, false) => "loaded".into(),
            (false, _) => "not available".into(),
        },
        advice: hook.note.clone(),
    }
}

/// The requirements of `--library`: the programs, and a library to which they can be attached.
fn libraries(options: ProbeOptions) -> Check {
    let options = ProbeOptions {
        content: Content::None,
        content_max: 0,
        spans: 0,
        library: Wanted::parse(&["libc:fread".to_string()]).unwrap_or_default(),
        ..options
    };
    let loaded = Probe::load(&options).and_then(|mut probe| probe.attach().map(|()| probe));
    let (found, advice) = match loaded {
        Err(error) => ("refused", error.to_string()),
        Ok(probe) => match probe.missing_libraries() {
            Some(hook) => ("not available", hook.note.clone()),
            None => ("loaded", String::new()),
        },
    };
    Check {
        ok: advice.is_empty(),
        what: "calls of libraries (--library)".into(),
        found: found.into(),
        advice,
    }
}

/// The requirements of `--stacks`: the program that takes the stacks, and access to mapped files
/// for unwinding.
fn stacks(options: ProbeOptions) -> Check {
    let options = ProbeOptions {
        content: Content::None,
        content_max: 0,
        spans: 0,
        stacks: true,
        ..options
    };
    let loaded = Probe::load(&options).and_then(|mut probe| probe.attach().map(|()| probe));
    let (found, advice) = match loaded {
        Err(error) => ("refused", error.to_string()),
        Ok(probe) => match probe.missing_stacks() {
            Some(hook) => ("not available", hook.note.clone()),
            None => match mapped_file() {
                Ok(()) => ("loaded, mapped files can be opened", String::new()),
                Err(error) => (
                    "loaded, but no mapped file can be opened",
                    format!(
                        "Without /proc/PID/map_files ({error}) stacks end before the program's own \
                         code: record as root, or with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE."
                    ),
                ),
            },
        },
    };
    Check {
        ok: advice.is_empty(),
        what: "call stacks (--stacks)".into(),
        found: found.into(),
        advice,
    }
}

/// Opens one of the files that this process has mapped, as unwinding does.
fn mapped_file() -> std::io::Result<()> {
    let mut entries = fs::read_dir("/proc/self/map_files")?;
    let first = entries
        .next()
        .unwrap_or_else(|| Err(std::io::ErrorKind::NotFound.into()))?;
    fs::File::open(first.path()).map(drop)
}

/// The perf counters. Virtual machines often lack the hardware ones.
fn counters() -> Check {
    let all = perf_counters_here();
    let names = |counted: bool| {
        let named: Vec<&str> = all
            .iter()
            .filter(|counter| counter.counted == counted)
            .map(|counter| counter.name.as_str())
            .collect();
        named.join(", ")
    };
    let (there, missing) = (names(true), names(false));
    let mut reasons: Vec<&str> = all
        .iter()
        .filter(|counter| !counter.counted)
        .map(|counter| counter.note.as_str())
        .collect();
    reasons.dedup();
    Check {
        // Off by default.
        ok: true,
        what: "perf counters (--counters)".into(),
        found: if there.is_empty() {
            "none".into()
        } else {
            there
        },
        advice: if missing.is_empty() {
            String::new()
        } else {
            format!("Not available: {missing} ({}).", reasons.join("; "))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(name: &str, attached: bool, note: &str) -> String {
        let hook = Hook {
            name: name.into(),
            attached,
            note: note.into(),
            skipped: 0,
        };
        let check = of_hook(&hook);
        assert_eq!(check.advice, note);
        format!("{} {}", check.mark().trim(), check.found)
    }

    #[test]
    fn a_function_that_is_not_there_is_no_failure() {
        let without = "path lookup is not a separate slice (this kernel lacks the attach point)";
        assert_eq!(mark("fentry/do_file_open", true, ""), "ok attached");
        for place in ["fentry/do_filp_open", "fexit/do_filp_open", LAYER_VFS] {
            assert_eq!(mark(place, false, without), "limited not available");
        }
        assert_eq!(
            mark("tp_btf/sched_switch", false, "waits are not recorded"),
            "MISSING not available"
        );
        let costs = "instead of tp_btf/sys_exit; costs more";
        let place = "tracepoint/raw_syscalls/sys_exit";
        assert_eq!(mark(place, true, costs), "limited attached");
    }
}
