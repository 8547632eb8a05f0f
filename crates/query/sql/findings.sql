-- What the rules of the diagnosis found, the worst first: made when a query names it, by one
-- pass over the calls and what is stored below them, or taken from such a pass that was made
-- before; always by the rules of the fathom that answers. `fathom diagnose` shows the same with its examples; docs/rules has a page for each rule.
--
-- rule: Id of the rule.
-- severity: low, medium or high.
-- correctness: Whether data may be lost, wrong or not read; else time is lost.
-- confidence: high, or low: column caveats says why.
-- cost_ns: What the run would have saved without it, nanoseconds; null where time is not the
--   matter.
-- title: What happens, in one sentence with the numbers.
-- subject: Process, thread and file that it is about, in words.
-- pid: Process; null when it is about several.
-- tid: Thread; null when it is about several.
-- comm: Name of the thread.
-- file_id: The file, in table files.
-- path: Path of the file or directory.
-- evidence: The numbers that it rests on, a JSON object.
-- examples: Numbers of requests (rid) that show it.
-- advice: What to do instead, and when not to.
-- query: SQL that lists all such calls.
-- page: Page of the rule, relative to the documentation.
-- caveats: What weakens it, one a line; null when nothing does.
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
