//! The schemas of JSON output, generated from the types that are serialized: `docs/reference/json`.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use fathom_testkit::expect_file;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

fn check<T: JsonSchema>(name: &str, command: &str) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(fathom_testkit::schema::close);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), command.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    expect_file(format!("docs/reference/json/{name}.json"), &text);
}

#[test]
fn schemas_of_json_output() {
    check::<fathom_report::Report>("report", "fathom report --format json");
    check::<Vec<crate::sizes::Size>>("report-sizes", "fathom report --sizes --format json");
    check::<fathom_diagnose::Diagnosis>("diagnose", "fathom diagnose --format json");
    check::<fathom_why::Story>("why", "fathom why --format json");
    check::<fathom_path::CriticalPath>("critical-path", "fathom critical-path --format json");
    check::<fathom_diff::Diff>("diff", "fathom diff --format json");
    check::<Vec<crate::sessions::Listed>>("sessions", "fathom sessions --format json");
    check::<Vec<fathom_report::FleetGroup>>("sessions-by", "fathom sessions --by --format json");
    check::<fathom_set::Summary>("set", "fathom set --format json");
    check::<crate::set::SetReport>("report-set", "fathom report SET --format json");
    check::<Vec<crate::set::MemberDiagnosis>>("diagnose-set", "fathom diagnose SET --format json");
    check::<Vec<crate::set::MemberStory>>("why-set", "fathom why SET --format json");
    check::<Vec<crate::set::MemberDiff>>("diff-set", "fathom diff SET SET --format json");
    check::<fathom_top::Frame>("top", "fathom top --format json, a line");
}
