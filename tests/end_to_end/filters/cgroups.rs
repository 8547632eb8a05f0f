//! Filters of tasks by cgroup and container, at the time of the call.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_tests::{Record, Scratch, need_root, skip, workload};

use super::{only_rows_crossed, set, written};

/// A cgroup that is removed with the test.
struct Cgroup(PathBuf);

impl Cgroup {
    /// The hierarchy of cgroup v2, and a new cgroup in it.
    fn new(scratch: &Scratch) -> Option<(PathBuf, Cgroup)> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let Some(root) = mount.and_then(|line| line.split(' ').nth(4)) else {
            skip("no cgroup v2 hierarchy is mounted");
            return None;
        };
        let name = scratch.root().file_name().unwrap();
        let path = Path::new(root).join(name);
        if let Err(error) = fs::create_dir(&path) {
            skip(&format!("no cgroup can be made in {root}: {error}"));
            return None;
        }
        Some((root.into(), Cgroup(path)))
    }

    fn add(&self, name: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap();
        path.display().to_string()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cgroups_and_containers_at_the_time_of_the_call() {
    need_root!();
    let scratch = Scratch::new();
    let Some((root, cgroup)) = Cgroup::new(&scratch) else {
        return;
    };
    let work = scratch.work();
    let digits: String = scratch
        .root()
        .display()
        .to_string()
        .bytes()
        .rev()
        .take(6)
        .map(|b| format!("{b:02x}"))
        .collect();
    let id = format!("{digits:0<64}");
    let container = cgroup.add(&format!("docker-{id}.scope"));
    let monitor = cgroup.add(&format!("libpod-conmon-{id}.scope"));
    let plain = cgroup.add("plain");
    let above = cgroup.0.display().to_string();
    let name = format!("fathom-{digits}");
    let unit = cgroup.add(&format!("{name}.service"));
    // Named after the unit, without being it.
    let other = cgroup.add(&name);
    let later_unit = cgroup.0.join(format!("later-{digits}.scope"));
    let later_unit = later_unit.display().to_string();
    let relative = Path::new("/").join(Path::new(&plain).strip_prefix(&root).unwrap());
    let relative = relative.display().to_string();
    // An engine's program that knows one name.
    let bin = scratch.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *' web-of-test') echo {id};; *) exit 1;; esac\n");
    fs::write(bin.join("docker"), script).unwrap();
    fs::set_permissions(
        bin.join("docker"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let later = cgroup.0.join(format!(
        "cri-containerd-{}.scope",
        id.replacen(&digits[..6], "abcdef", 1)
    ));
    let later = later.display().to_string();
    let start = root.display().to_string();
    let moved: &[&str] = &["moved"];
    let stayed: &[&str] = &["after", "before"];
    let cases: Vec<(&str, Vec<String>, &[&str])> = vec![
        (&plain, vec![format!("--cgroup={plain}")], moved),
        (&plain, vec![format!("--cgroup={relative}")], moved),
        (&plain, vec![format!("--cgroup={above}")], moved),
        (&plain, vec![format!("--cgroup=!{plain}")], stayed),
        (&plain, vec![format!("--cgroup={container}")], &[]),
        (
            &plain,
            vec!["--cgroup=/".into()],
            &["after", "before", "moved"],
        ),
        (&container, vec![format!("--container={id}")], moved),
        (
            &container,
            vec![format!("--container={}", &id[..12])],
            moved,
        ),
        (&container, vec!["--container=web-of-test".into()], moved),
        (&container, vec![format!("--container=!{id}")], stayed),
        (&container, vec!["--container=ffffffff*".into()], &[]),
        (&monitor, vec![format!("--container={id}")], &[]),
        // A container that is made after the recording has begun.
        (&later, vec!["--container=abcdef*".into()], moved),
        (&unit, vec![format!("--unit={name}.service")], moved),
        (&unit, vec![format!("--unit={name}")], moved),
        (&unit, vec![format!("--unit=!{name}")], stayed),
        (&unit, vec![format!("--unit=other,{name}")], moved),
        (&unit, vec![format!("--unit={name}.scope")], &[]),
        (&plain, vec![format!("--unit={name}")], &[]),
        (&other, vec![format!("--unit={name}")], &[]),
        // A unit that starts after the recording has begun.
        (
            &later_unit,
            vec![format!("--unit=later-{digits}.scope")],
            moved,
        ),
        (
            &unit,
            vec![format!("--unit={name}"), format!("--cgroup={plain}")],
            &[],
        ),
        // Both have to agree.
        (
            &container,
            vec![format!("--container={id}"), format!("--cgroup={plain}")],
            &[],
        ),
    ];
    for (number, (to, options, files)) in cases.iter().enumerate() {
        let _ = fs::remove_dir(&later);
        let _ = fs::remove_dir(&later_unit);
        fs::remove_dir_all(&work).unwrap();
        fs::create_dir(&work).unwrap();
        let recording = Record::named(&scratch, &format!("cgroups-{number}"))
            .options(options)
            .command([
                workload("filters").as_os_str(),
                "cgroups".as_ref(),
                work.as_os_str(),
                start.as_ref(),
                (*to).as_ref(),
            ]);
        let recording = with_path(recording, &path).run().must_exit(0);
        only_rows_crossed(&recording);
        assert_eq!(written(&recording, &work), set(files), "{options:?}");
        if *files == ["moved"] {
            // The thread that moves, the other one, and a child.
            assert_eq!(
                recording
                    .number("SELECT count(DISTINCT tid) FROM syscalls WHERE path LIKE '%/moved'"),
                3,
                "{options:?}"
            );
        }
    }
}

/// `record` finds the engines' programs on its own path.
fn with_path(record: Record, path: &str) -> Record {
    record.env("PATH", path)
}
