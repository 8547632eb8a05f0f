//! Containers, recognized by the names that their engines give to cgroups.

/// The id (or, for LXC and systemd-nspawn, the name) of the container that a
/// cgroup belongs to; the innermost when they are nested.
pub fn id(cgroup: &str) -> Option<String> {
    let components: Vec<&str> = cgroup.split('/').filter(|c| !c.is_empty()).collect();
    components
        .iter()
        .enumerate()
        .rev()
        .find_map(|(i, component)| {
            let parent = i.checked_sub(1).and_then(|p| components.get(p)).copied();
            of_component(component, parent)
        })
}

fn of_component(component: &str, parent: Option<&str>) -> Option<String> {
    // docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope,
    // nerdctl-ID.scope; kubepods-...slice:cri-containerd:ID; and ID alone, as
    // Docker and Kubernetes name them without systemd. The monitors of Podman
    // and CRI-O (conmon) live outside of the containers.
    let unit = component.strip_suffix(".scope").unwrap_or(component);
    if let Some((before, id)) = unit.split_at_checked(unit.len().wrapping_sub(ID_LEN))
        && is_id(id)
        && (before.is_empty() || before.ends_with(['-', ':']))
        && !before.contains("conmon")
    {
        return Some(id.to_string());
    }
    // lxc.payload.NAME, lxc.payload/NAME, lxc/NAME
    if let Some(name) = component
        .strip_prefix("lxc.payload.")
        .filter(|n| !n.is_empty())
    {
        return Some(name.to_string());
    }
    if matches!(parent, Some("lxc" | "lxc.payload")) {
        return Some(component.to_string());
    }
    // machine-NAME.scope, systemd-nspawn@NAME.service
    let machine = component
        .strip_prefix("machine-")
        .and_then(|c| c.strip_suffix(".scope"))
        .or_else(|| {
            component
                .strip_prefix("systemd-nspawn@")?
                .strip_suffix(".service")
        })?;
    (!machine.is_empty() && !machine.starts_with("qemu")).then(|| unescape(machine))
}

const ID_LEN: usize = 64;

/// The longest name of an object of Kubernetes.
const MAX_NAME: usize = 253;

/// Whether `text` may be a name of Kubernetes: one of DNS, in lower case.
pub fn is_dns_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    let dots = text.starts_with('.') || text.contains("..");
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(allowed) && !dots
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LEN && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Undoes the `\xHH` of systemd's unit names.
fn unescape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        out.push_str(before);
        let code = after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(u8::is_ascii) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push_str("\\x");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246";

    #[test]
    fn engines() {
        for pattern in [
            "/docker/ID",
            "/system.slice/docker-ID.scope",
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
            "/machine.slice/libpod-ID.scope",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-ID.scope",
            "/kubepods.slice/kubepods-pod3.slice/crio-ID.scope",
            "/kubepods/burstable/pod4-5/ID",
            "/system.slice/kubepods-besteffort-pod6.slice:cri-containerd:ID",
            "/default/ID",
            "/user.slice/nerdctl-ID.scope",
            "/docker/ID/system.slice/cron.service",
        ] {
            let cgroup = pattern.replace("ID", super::tests::ID);
            assert_eq!(id(&cgroup).as_deref(), Some(ID), "{cgroup}");
        }
    }

    #[test]
    fn names() {
        for (cgroup, expected) in [
            ("/lxc/web1", Some("web1")),
            ("/lxc.payload/web1/init.scope", Some("web1")),
            ("/lxc.payload.web-1/system.slice", Some("web-1")),
            ("/machine.slice/machine-deb\\x2d12.scope", Some("deb-12")),
            (
                "/machine.slice/systemd-nspawn@deb12.service/payload",
                Some("deb12"),
            ),
            ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", None),
            ("/machine.slice/machine-a\\xzz\\x", None),
            ("/machine.slice/machine-a\\xzz.scope", Some("a\\xzz")),
            ("/user.slice/user-0.slice/session-1.scope", None),
            ("/system.slice/ssh.service", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(id(cgroup).as_deref(), expected, "{cgroup}");
        }
        let monitor = format!("/machine.slice/libpod-conmon-{ID}.scope");
        assert_eq!(id(&monitor), None);
        let longer = format!("/docker/a{ID}");
        assert_eq!(id(&longer), None);
        // 64 bytes, but no boundary of characters at the right place.
        assert_eq!(id(&format!("/{}", "\u{e4}".repeat(50))), None);
    }
}
