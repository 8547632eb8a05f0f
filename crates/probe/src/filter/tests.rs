use super::*;

fn parse(change: impl FnOnce(&mut FilterArgs)) -> Result<Filters, FilterError> {
    let mut args = FilterArgs::default();
    change(&mut args);
    Filters::parse(&args, false)
}

fn message(change: impl FnOnce(&mut FilterArgs)) -> String {
    parse(change).unwrap_err().to_string()
}

#[test]
fn nothing_given_filters_nothing() {
    let filters = parse(|_| {}).unwrap();
    assert_eq!(filters.config.given, 0);
    assert_eq!(filters.config.file_types, 0);
    assert_eq!(filters.rules().len(), 0);
    assert!(!filters.by_path());
}

#[test]
fn values_take_and_leave() {
    let filters = parse(|args| {
        args.path = vec!["/a/b".into(), "!/a/b/c".into()];
        args.comm = vec!["!sh".into()];
        args.uid = vec!["0,!1".into()];
    })
    .unwrap();
    let (path, depth) = filters.hasher.path(b"/a/b");
    assert_eq!(depth, 2);
    assert_eq!(
        filters.rules.get(&(RULE_PATH, RULE_WHOLE, path)),
        Some(&RULE_TAKES)
    );
    assert_eq!(filters.config.path_depths, 1 << 2 | 1 << 3);
    assert_eq!(filters.config.takes, 1 << RULE_PATH | 1 << RULE_UID);
    assert_eq!(
        filters.config.given,
        1 << RULE_PATH | 1 << RULE_COMM | 1 << RULE_UID
    );
    assert_eq!(filters.rules().len(), 5);
}

#[test]
fn a_path_is_told_from_its_neighbors() {
    let filters = parse(|_| {}).unwrap();
    let hash = |path: &str| filters.hasher.path(path.as_bytes());
    assert_eq!(hash("/data/x"), hash("//data/x/"));
    assert_eq!(hash("/").1, 0);
    for other in ["/database", "/dat/a", "/x/data", "/data/x/x"] {
        assert_ne!(hash("/data/x").0, hash(other).0, "{other}");
    }
}

#[test]
fn patterns_of_paths_are_refused() {
    for pattern in [
        "*.bin",
        "/data/**",
        "/data/x?",
        "!/var/*",
        "/nonexistent/[ab]",
    ] {
        let text = message(|args| args.path = vec![pattern.into()]);
        assert!(text.contains("makes this a pattern"), "{pattern}: {text}");
        assert!(text.contains("record the directory"), "{pattern}: {text}");
    }
    let filters = parse(|args| args.path = vec![r"/data/\*.bin".into()]).unwrap();
    let (path, _) = filters.hasher.path(b"/data/*.bin");
    assert!(filters.rules.contains_key(&(RULE_PATH, RULE_WHOLE, path)));
    // A file that has such a name is meant by it.
    let file = std::env::temp_dir().join(format!("fathom-[{}]", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let filters = parse(|args| args.path = vec![file.clone().into()]);
    std::fs::remove_file(&file).unwrap();
    let filters = filters.unwrap();
    let (path, _) = filters.hasher.path(file.as_os_str().as_bytes());
    assert!(filters.rules.contains_key(&(RULE_PATH, RULE_WHOLE, path)));
}

#[test]
fn a_star_in_a_name_is_at_its_end() {
    for pattern in ["*x", "a*b", "a**"] {
        let text = message(|args| args.comm = vec![pattern.into()]);
        assert!(text.contains("at the end"), "{pattern}: {text}");
    }
    let filters = parse(|args| args.comm = vec![r"a\*".into(), r"b\**".into()]).unwrap();
    let hash = |name: &[u8]| filters.hasher.text(name);
    let has = |form, name| filters.rules.contains_key(&(RULE_COMM, form, hash(name)));
    assert!(has(RULE_WHOLE, b"a*") && has(RULE_BEGINNING, b"b*"));
}

#[test]
fn names_are_cut_as_the_kernel_cuts_them() {
    let filters = parse(|args| args.comm = vec!["a-very-long-name-of-a-thread".into()]).unwrap();
    let hash = filters.hasher.text(b"a-very-long-nam");
    assert!(filters.rules.contains_key(&(RULE_COMM, RULE_WHOLE, hash)));
    let filters = parse(|args| args.comm = vec!["redis*".into(), "*".into()]).unwrap();
    assert_eq!(filters.config.comm_lengths, 1 << 5 | 1);
}

#[test]
fn types_of_files() {
    let types = |list: &str, all| {
        let args = FilterArgs {
            file_type: vec![list.into()],
            ..FilterArgs::default()
        };
        Filters::parse(&args, all).map(|f| f.config)
    };
    let some = types("regular,socket", false).unwrap();
    assert_eq!((some.file_types, some.known_types), (1 << 8 | 1 << 12, 1));
    let some = types("!directory", false).unwrap();
    assert_eq!(some.file_types, 1 << 8 | 1 << 10 | 1 << 6 | 1 << 2);
    assert_eq!(some.path_types & (1 << 12 | 1 << 4), 1 << 12);
    assert_eq!(some.known_types, 0);
    let some = types("!directory", true).unwrap();
    assert_eq!(some.file_types, some.path_types);
    assert!(
        types("file", false)
            .unwrap_err()
            .to_string()
            .contains("regular")
    );
    assert!(matches!(
        types("regular,!regular", false),
        Err(FilterError::Contradiction { .. })
    ));
    let none = "!regular,!directory,!symlink,!block,!char";
    assert!(matches!(types(none, false), Err(FilterError::NoType)));
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert!(message(|a| a.uid = vec!["nobody-by-this-name".into()]).contains("no such user"));
    assert!(message(|a| a.pid = vec!["x".into()]).contains("--pid x"));
    assert!(message(|a| a.pid = vec!["0".into()]).contains("--pid 0"));
    assert!(message(|a| a.pid = vec!["5,!5".into()]).contains("both"));
    assert!(message(|a| a.pid = vec!["!5".into(), "5".into()]).contains("both"));
    assert!(message(|a| a.tid = vec!["4194305".into()]).contains("no such thread"));
    assert!(message(|a| a.comm = vec!["".into()]).contains("empty"));
    assert!(message(|a| a.comm = vec!["!".into()]).contains("empty"));
    assert!(message(|a| a.comm = vec!["a".into(), "!a".into()]).contains("both"));
    assert!(message(|a| a.path = vec!["x".repeat(256).into()]).contains("too long"));
    assert!(message(|a| a.path = vec!["/a".into(), "!/b/../a".into()]).contains("both"));
    assert!(message(|a| a.container = vec!["web*".into()]).contains("digits"));
    assert!(message(|a| a.cgroup = vec!["/not/there".into()]).contains("cgroup"));
}

#[test]
fn targets_end_a_recording() {
    assert!(parse(|a| a.comm = vec!["x".into()]).unwrap().open_ended());
    let own = std::process::id().to_string();
    assert!(!parse(|a| a.tid = vec![own]).unwrap().open_ended());
    let filters = parse(|a| a.pid = vec!["7,!8".into()]).unwrap();
    assert_eq!(filters.pids(), [7]);
    assert_eq!(filters.config.given, 1 << RULE_PID);
}
