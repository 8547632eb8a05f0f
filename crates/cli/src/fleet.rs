//! `fathom sessions --by`: many sessions at a glance.

use std::io::Write as _;

use fathom_model::{escape, units};
use fathom_query::Limits;
use fathom_report::{Fleet, FleetGroup, FleetKey, FleetShares};
use fathom_session::{Session, on_latest};

use crate::analysis;
use crate::args::{SessionsArgs, SessionsFormat};
use crate::exit::Failure;
use crate::output::{aligned, json};
use crate::sessions;

/// Runs `sessions --by` and returns the exit status.
pub fn run(args: &SessionsArgs) -> Result<u8, Failure> {
    analysis::no_set(&args.dir)?;
    let asked = FleetKey::list(&args.by.join(","));
    let (by, label) = asked.map_err(|what| Failure::input(anyhow::anyhow!("--by: {what}")))?;
    let (by, label) = (&by[..], &*label);
    let extensions = args.extensions.load()?;
    let dirs = sessions::directories(&args.dir).map_err(Failure::input)?;
    let mut fleet = Fleet::new(by, label);
    for dir in &dirs {
        // A session that cannot be opened is named below.
        let known = Session::glance(dir);
        if known.is_ok_and(|session| !sessions::has_labels(&session, &args.label)) {
            continue;
        }
        let name = sessions::name(dir);
        let read = Session::open(dir)
            .map_err(anyhow::Error::from)
            .and_then(|mut session| {
                let read = |session: &Session| {
                    FleetShares::read(session, fleet.detail(), &extensions, Limits::default())
                };
                Ok(on_latest(&mut session, read)?)
            });
        match read {
            Ok(shares) => fleet.add(&name, &shares),
            Err(error) => fleet.leave_out(&name, &error.to_string()),
        }
    }
    let (groups, notes) = fleet.finish(args.top);
    for note in &notes {
        errln!("fathom: {note}");
    }
    let shown = escape::text(&args.dir.to_string_lossy()).into_owned();
    let text = match args.format {
        SessionsFormat::Json => json(&groups)?,
        SessionsFormat::Text if dirs.is_empty() => {
            format!("no sessions in {shown}; record one with fathom record -- COMMAND\n")
        }
        SessionsFormat::Text if groups.is_empty() => {
            format!("{}\n", without_rows(by, &shown))
        }
        SessionsFormat::Text => table(&groups, by, label),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Failure::input)?;
    Ok(0)
}

/// Why the sessions in a directory give no row.
fn without_rows(by: &[FleetKey], dir: &str) -> String {
    let nothing = match by.iter().find(|key| key.is_detail()) {
        Some(FleetKey::Finding) => "has findings; fathom diagnose looks for them in large sessions",
        Some(FleetKey::Volume) => "has calls on files of a Kubernetes volume",
        Some(FleetKey::Device) => "has requests to a block device; record them with --layers block",
        _ => "has calls",
    };
    format!("no session in {dir} {nothing}")
}

/// Width of a name in the table.
const NAME: usize = 48;

fn table(groups: &[FleetGroup], by: &[FleetKey], label: &str) -> String {
    const SUMS: [&str; 7] = [
        "SESSIONS",
        "HOSTS",
        "FINDINGS",
        "CALLS",
        "BYTES",
        "TIME",
        "SESSION WITH MOST",
    ];
    let dash = || "-".to_string();
    let shown = |text: Option<&str>| match text {
        Some(text) => escape::shorten(&escape::text(text), NAME),
        None => dash(),
    };
    let titles = by.iter().map(|by| match by {
        FleetKey::Label => escape::shorten(&escape::text(label), NAME),
        by => by.name().to_uppercase(),
    });
    let titles = titles.chain(SUMS.map(str::to_owned));
    let mut rows: Vec<Vec<String>> = vec![titles.collect()];
    for group in groups {
        let mut row: Vec<String> = by.iter().map(|by| shown(by.of(group))).collect();
        row.extend([
            units::count(signed(group.sessions)),
            units::count(signed(group.hosts)),
            group.findings.map_or_else(dash, |n| n.to_string()),
            group.calls.map_or_else(dash, units::count),
            group.bytes.map_or_else(dash, units::bytes),
            units::duration(group.time_ns),
            escape::text(&group.session).into_owned(),
        ]);
        rows.push(row);
    }
    aligned(&rows)
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_escaped() {
        let mut group = FleetGroup::default();
        group.host = Some("a\u{1b}[2J\nb".to_owned());
        let text = table(&[group], &[FleetKey::Host], "");
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
