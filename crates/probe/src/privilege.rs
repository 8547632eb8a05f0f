//! Whether this process may load eBPF programs.

use std::fs;

/// A capability that is missing, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// Missing capabilities: `CAP_BPF`, ...
    pub capabilities: Vec<&'static str>,
}

impl std::fmt::Display for Privilege {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let program = std::env::current_exe()
            .map_or_else(|_| "fathom".to_string(), |path| path.display().to_string());
        write!(
            f,
            "no permission to record: {} {} missing. Run it as root:\n  sudo {program} ...\nor \
             give the program the capabilities once:\n  sudo setcap \
             cap_bpf,cap_perfmon,cap_sys_resource,cap_sys_ptrace,cap_dac_read_search+ep {program}",
            self.capabilities.join(" and "),
            if self.capabilities.len() == 1 {
                "is"
            } else {
                "are"
            },
        )
    }
}

impl std::error::Error for Privilege {}

/// include/uapi/linux/capability.h
const CAP_SYS_ADMIN: u32 = 21;
const NEEDED: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];

/// The capabilities that this process lacks to record; `None` when it has all.
pub fn missing_privilege() -> Option<Privilege> {
    let effective = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| effective_capabilities(&status))
        .unwrap_or(0);
    let capabilities = missing(effective);
    (!capabilities.is_empty()).then_some(Privilege { capabilities })
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// CAP_SYS_ADMIN includes both.
fn missing(effective: u64) -> Vec<&'static str> {
    let has = |capability: u32| effective & (1 << capability) != 0;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    NEEDED
        .iter()
        .filter(|(number, _)| !has(*number))
        .map(|(_, name)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_named() {
        let status = "Name:\tx\nCapEff:\t000001fffeffffff\n";
        assert_eq!(
            missing(effective_capabilities(status).unwrap()),
            Vec::<&str>::new()
        );
        assert_eq!(missing(0), ["CAP_PERFMON", "CAP_BPF"]);
        assert_eq!(missing(1 << 38), ["CAP_BPF"]);
        let text = Privilege {
            capabilities: missing(0),
        }
        .to_string();
        assert!(
            text.contains("CAP_PERFMON and CAP_BPF are missing"),
            "{text}"
        );
        assert!(text.contains("sudo"), "{text}");
    }
}
