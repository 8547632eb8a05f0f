-- The findings of the diagnosis, the worst first. A query that names this table runs the rules in
-- one pass over the session, or uses the cached result of an earlier pass by the same version of
-- the rules. `fathom diagnose` shows the same findings with examples; docs/rules has one page per
-- rule.
--
-- rule: Id of the rule.
-- severity: low, medium, or high.
-- correctness: Whether data may be lost, wrong, or unread; otherwise the finding is about time.
-- confidence: high, or low: column caveats gives the reason.
-- cost_ns: Estimated time that the run would save without it, nanoseconds; null for findings that
--   are not about time.
-- title: The finding in one sentence, with its numbers.
-- subject: The process, thread, and file, in words.
-- pid: Process; null if it concerns several.
-- tid: Thread; null if it concerns several.
-- comm: Name of the thread.
-- file_id: The file, in table files.
-- path: Path of the file or directory.
-- evidence: The numbers behind it, a JSON object.
-- examples: Ids (rid) of example requests.
-- advice: How to fix it, and when not to.
-- query: SQL that lists all such calls.
-- page: Documentation page of the rule, relative to docs/.
-- caveats: Reasons for low confidence, one per line; null if there are none.
CREATE TABLE findings (
    rule VARCHAR,
    severity VARCHAR,
    correctness BOOLEAN,
    confidence VARCHAR,
    cost_ns BIGINT,
    title VARCHAR,
    subject VARCHAR,
    pid INTEGER,
    tid INTEGER,
    comm VARCHAR,
    file_id BIGINT,
    path VARCHAR,
    evidence VARCHAR,
    examples BIGINT[],
    advice VARCHAR,
    query VARCHAR,
    page VARCHAR,
    caveats VARCHAR
);
