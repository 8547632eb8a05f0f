//! Tenants of a session, as filters name them.

use super::Question;

pub(super) const QUESTIONS: &[Question] = &[Question {
    name: "tenants",
    about: "the cgroups, units, pods, namespaces, and containers of recorded processes, and the volumes of files, as filters \
        name them, at most 200 of each; `count` is the number of processes, of a volume the number of files",
    takes: &[],
    rows: 1200,
    sql: || {
        let of_processes = [
            ("cgroup", "cgroup", "cgroup"),
            ("unit", "unit", "unit"),
            ("pod", "namespace || '/' || pod", "namespace || '/' || pod"),
            ("namespace", "namespace", "namespace"),
            (
                "container",
                "container_id",
                "coalesce(namespace || '/' || pod || '/' || container, container_id)",
            ),
        ]
        .map(|(kind, value, label)| {
            format!(
                "SELECT '{kind}' AS kind, {value} AS value, {label} AS label, count(DISTINCT pid) AS count \
                 FROM tenants GROUP BY ALL"
            )
        });
        format!(
            "SELECT * FROM ({}
    UNION ALL SELECT 'volume', coalesce(namespace || '/' || claim, plugin || '/' || volume) AS value, value, count(*)
    FROM volume_files GROUP BY ALL)
WHERE value IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY kind ORDER BY count DESC, value) <= 200
ORDER BY kind, count DESC, value",
            of_processes.join("\n    UNION ALL ")
        )
    },
}];
