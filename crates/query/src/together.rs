//! Paths that count together: each takes little, but there are many. Otherwise a program that
//! reads thousands of small files would seem to do something else. The report and the page show
//! such paths as one row, under the directory that contains nearly all of them.

use std::collections::{BTreeMap, HashMap};

use fathom_model::units::count;

/// Share of the sum over all rows below which a path takes little.
pub const LITTLE: f64 = 0.02;
/// Number of such paths from which on they count together.
pub const MANY: usize = 20;
/// Share of the paths, and of their sum, that a directory contains to stand for all of them.
pub const NEARLY_ALL: f64 = 0.9;
/// Share of the sum over such paths that a directory in `/` has to count by itself.
const PART: f64 = 0.1;

/// SQL: the rows of `from`, one per path, with column `together`. `value` is summed over all rows;
/// the paths are counted per `partition`, an expression.
pub fn marked(from: &str, path: &str, value: &str, partition: &str) -> String {
    format!(
        "SELECT * EXCLUDE (takes_little), takes_little AND \
             count(*) FILTER (takes_little) OVER (PARTITION BY {partition}) >= {MANY} AS together \
         FROM (SELECT *, coalesce(starts_with({path}, '/') AND \
             {value} < {LITTLE} * sum({value}) OVER (), false) AS takes_little FROM {from})"
    )
}

/// SQL: the directory of a path, for [`Place::of`].
pub fn directory_of(path: &str) -> String {
    format!("parse_dirpath({path}, 'forward_slash')")
}

/// Where paths are that count together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The deepest directory that contains nearly all of them.
    pub directory: String,
    /// Paths in it, or in a directory below it.
    pub inside: i64,
    /// The other paths.
    pub elsewhere: i64,
}

impl Place {
    /// The place of paths. A row is a directory, the number of its paths, and the sum of their
    /// values; a directory may have several rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = (&'a str, i64, f64)>) -> Self {
        let mut inside: Vec<_> = rows
            .into_iter()
            .map(|(directory, paths, value)| {
                let names = directory.split('/').filter(|name| !name.is_empty());
                (names, paths, value)
            })
            .collect();
        let sums =
            |paths: i64, value: f64, of: (i64, f64)| (of.0.saturating_add(paths), of.1 + value);
        let all = inside
            .iter()
            .fold((0, 0.0), |of, row| sums(row.1, row.2, of));
        let mut place = Self {
            directory: String::new(),
            inside: all.0,
            elsewhere: 0,
        };
        loop {
            let mut below: HashMap<&str, (i64, f64)> = HashMap::new();
            let mut steps = Vec::with_capacity(inside.len());
            for (mut names, paths, value) in inside {
                if let Some(name) = names.next() {
                    let of = below.entry(name).or_default();
                    *of = sums(paths, value, *of);
                    steps.push((name, names, paths, value));
                }
            }
            let nearly_all = |of: &(i64, f64)| {
                of.0 as f64 >= NEARLY_ALL * all.0 as f64 && of.1 >= NEARLY_ALL * all.1
            };
            // More than half of the paths: no other directory has as many.
            let Some((next, of)) = below.into_iter().find(|(_, of)| nearly_all(of)) else {
                break;
            };
            place.directory.push('/');
            place.directory.push_str(next);
            place.inside = of.0;
            place.elsewhere = all.0.saturating_sub(of.0);
            inside = steps
                .into_iter()
                .filter(|step| step.0 == next)
                .map(|(_, names, paths, value)| (names, paths, value))
                .collect();
        }
        if place.directory.is_empty() {
            place.directory.push('/');
        }
        place
    }

    /// All of the paths.
    pub fn paths(&self) -> i64 {
        self.inside.saturating_add(self.elsewhere)
    }

    /// `6,305 paths, all but 9 in /usr/share/doc`: a table that is too narrow keeps both ends. Paths
    /// that no directory contains nearly all of are in many.
    pub fn name(&self) -> String {
        let (paths, directory) = (count(self.paths()), &self.directory);
        if directory == "/" {
            return format!("{paths} paths in many directories");
        }
        match self.elsewhere {
            0 => format!("{paths} paths in {directory}"),
            n => format!("{paths} paths, all but {} in {directory}", count(n)),
        }
    }
}

/// Paths that count as one row.
#[derive(Clone, Debug)]
pub struct Group {
    pub place: Place,
    /// Their rows, as given to [`groups`].
    pub rows: Vec<usize>,
    /// The directory in `/` that contains all of them, and no path of another group; `None` if the
    /// group has the paths that no other one has.
    pub below: Option<String>,
}

/// The groups of paths that count together, the largest value first. Rows are as for [`Place::of`].
/// Where no directory contains nearly all paths, those in `/` that have a good part of the paths'
/// value are groups of their own.
pub fn groups(rows: &[(&str, i64, f64)]) -> Vec<Group> {
    let value = |row: &usize| rows.get(*row).map_or(0.0, |row| row.2);
    let group = |members: Vec<usize>, below: Option<&str>| Group {
        place: Place::of(members.iter().filter_map(|row| rows.get(*row).copied())),
        rows: members,
        below: below.map(str::to_owned),
    };
    if rows.is_empty() {
        return Vec::new();
    }
    let whole = group((0..rows.len()).collect(), None);
    if whole.place.directory != "/" {
        return vec![whole];
    }
    let least = PART * whole.rows.iter().map(value).sum::<f64>();
    let mut below: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut rest = Vec::new();
    for (row, (directory, ..)) in rows.iter().enumerate() {
        match directory.split('/').find(|name| !name.is_empty()) {
            Some(name) => below.entry(name).or_default().push(row),
            None => rest.push(row),
        }
    }
    let mut found = Vec::new();
    for (name, members) in below {
        let paths: i64 = members
            .iter()
            .filter_map(|row| rows.get(*row))
            .map(|row| row.1)
            .sum();
        match paths >= MANY as i64 && members.iter().map(value).sum::<f64>() >= least {
            true => found.push(group(members, Some(name))),
            false => rest.extend(members),
        }
    }
    if !rest.is_empty() {
        found.push(group(rest, None));
    }
    let total = |group: &Group| group.rows.iter().map(value).sum::<f64>();
    found.sort_by(|a, b| total(b).total_cmp(&total(a)));
    found
}

#[cfg(test)]
mod tests {
    use super::{Place, groups};

    fn named(rows: &[(&str, i64, f64)]) -> String {
        Place::of(rows.iter().copied()).name()
    }

    #[test]
    fn the_deepest_directory_with_nearly_all_stands_for_them() {
        for (rows, name) in [
            (&[("/srv/a", 20, 1.0)][..], "20 paths in /srv/a"),
            // Neither has nine tenths.
            (
                &[("/srv/a", 20, 1.0), ("/srv/b", 20, 1.0)],
                "40 paths in /srv",
            ),
            (
                &[("/srv/a", 20, 1.0), ("/srv/ab", 20, 1.0)],
                "40 paths in /srv",
            ),
            (
                &[("", 20, 1.0), ("/b", 20, 1.0)],
                "40 paths in many directories",
            ),
            (
                &[
                    ("/usr/share/doc/a", 3000, 30.0),
                    ("/usr/share/doc/ä", 3000, 30.0),
                    ("/lib", 2, 1.0),
                ],
                "6,002 paths, all but 2 in /usr/share/doc",
            ),
            // Exactly nine tenths of both; then too little of the paths, and of the time.
            (
                &[("/srv/a", 90, 90.0), ("/etc", 10, 10.0)],
                "100 paths, all but 10 in /srv/a",
            ),
            (
                &[("/srv/a", 89, 90.0), ("/etc", 11, 10.0)],
                "100 paths in many directories",
            ),
            (
                &[("/srv/a", 90, 89.0), ("/etc", 10, 11.0)],
                "100 paths in many directories",
            ),
            // A path that is itself the directory is not in it.
            (
                &[("/srv", 1, 0.0), ("/srv/a", 99, 1.0)],
                "100 paths, all but 1 in /srv/a",
            ),
            (&[], "0 paths in many directories"),
        ] {
            assert_eq!(named(rows), name, "{rows:?}");
        }
    }

    #[test]
    fn paths_all_over_the_place_are_a_row_per_part() {
        let rows = [
            ("/usr/share/doc/a", 300, 30.0),
            ("/root/.cargo/registry", 100, 40.0),
            ("/usr/share/doc/b", 300, 30.0),
            // Too few paths, too little of the sum.
            ("/srv", 19, 20.0),
            ("/etc", 500, 5.0),
            ("", 2, 1.0),
        ];
        let found: Vec<(String, Vec<usize>, Option<String>)> = groups(&rows)
            .into_iter()
            .map(|group| (group.place.name(), group.rows, group.below))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "600 paths in /usr/share/doc".to_owned(),
                    vec![0, 2],
                    Some("usr".to_owned())
                ),
                (
                    "100 paths in /root/.cargo/registry".to_owned(),
                    vec![1],
                    Some("root".to_owned())
                ),
                (
                    "521 paths in many directories".to_owned(),
                    vec![5, 4, 3],
                    None
                ),
            ]
        );
        assert_eq!(groups(&rows[..1]).len(), 1);
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn paths_without_time_have_a_place() {
        assert_eq!(
            named(&[("/a/b", 20, 0.0), ("/a/c", 1, 0.0)]),
            "21 paths, all but 1 in /a/b"
        );
    }
}
