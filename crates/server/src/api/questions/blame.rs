//! Rows of view `blame`, by thread and by process, of the window.

use fathom_query::blame_between;

use super::Question;

/// More rows than these are cut.
const ROWS: usize = 5_000;

pub(super) const QUESTIONS: &[Question] = &[
    Question {
        name: "blame-threads",
        about: "who held whom up, by thread, in the window",
        takes: &[],
        rows: ROWS,
        sql: || {
            let blame = blame();
            format!(
                "SELECT
    resource, kind, victim_tid AS victim_id, victim_comm AS victim, victim_pid IS NOT NULL AS victim_known,
    culprit_tid AS culprit_id, culprit_comm AS culprit, culprit_pid IS NOT NULL AS culprit_known,
    culprit_tid IS NOT NULL AS has_culprit, time_ns, share
FROM ({blame})
ORDER BY time_ns DESC, resource, victim_id, culprit_id"
            )
        },
    },
    // Threads whose process is not known are distinguished by their names.
    Question {
        name: "blame-processes",
        about: "the same by process",
        takes: &[],
        rows: ROWS,
        sql: || {
            let blame = blame();
            format!(
                "WITH sums AS (
    SELECT
        resource, kind, victim_pid AS victim_id, if(victim_pid IS NULL, victim_comm, NULL) AS victim_other,
        culprit_pid AS culprit_id, if(culprit_pid IS NULL, culprit_comm, NULL) AS culprit_other,
        culprit_tid IS NOT NULL AS has_culprit,
        max(coalesce(victim_process, victim_comm)) AS victim, max(coalesce(culprit_process, culprit_comm)) AS culprit,
        bounded(sum(time_ns)) AS time_ns
    FROM ({blame}) GROUP BY ALL
)
SELECT
    resource, kind, victim_id, victim, victim_id IS NOT NULL AS victim_known, culprit_id, culprit,
    culprit_id IS NOT NULL AS culprit_known, has_culprit, time_ns,
    time_ns / sum(time_ns) OVER (PARTITION BY resource, kind, victim_id, victim_other) AS share
FROM sums
ORDER BY time_ns DESC, resource, victim_id, culprit_id, victim, culprit"
            )
        },
    },
];

/// The view, with the window's places.
fn blame() -> String {
    blame_between("$since", "$until")
}
