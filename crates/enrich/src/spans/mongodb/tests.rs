//! Messages as drivers and servers exchange them.

use super::super::bson::tests::{Given, document};
use super::super::tests::{Script, failed, span};
use super::*;

fn framed(id: i32, response_to: i32, operation: i32, body: &[u8]) -> Vec<u8> {
    let words = [(HEADER + body.len()) as i32, id, response_to, operation];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(i32::to_le_bytes).collect();
    bytes.extend(body);
    bytes
}

fn sent(id: i32, flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    framed(
        id,
        0,
        MSG,
        &[&flags.to_le_bytes()[..], &sections.concat()].concat(),
    )
}

fn one(document: &[u8]) -> Vec<u8> {
    [&[0][..], document].concat()
}

fn several(field: &str, documents: &[Vec<u8>]) -> Vec<u8> {
    let inside = [field.as_bytes(), b"\0", &documents.concat()].concat();
    let length = (inside.len() as i32 + 4).to_le_bytes();
    [&[1][..], &length, &inside].concat()
}

/// A command on collection `c`.
pub(in super::super) fn find(id: i32) -> Vec<u8> {
    let filter = document(&[
        ("name", Given::Text("secret")),
        ("age", Given::Document(document(&[("$gt", Given::Int(3))]))),
    ]);
    let body = document(&[
        ("find", Given::Text("c")),
        ("filter", Given::Document(filter)),
        ("$db", Given::Text("d")),
    ]);
    sent(id, 0, &[&one(&body)])
}

pub(in super::super) fn answer(to: i32, elements: &[(&str, Given<'_>)]) -> Vec<u8> {
    let body = [&0u32.to_le_bytes()[..], &one(&document(elements))].concat();
    framed(900 + to, to, MSG, &body)
}

fn fine(to: i32) -> Vec<u8> {
    answer(to, &[("n", Given::Int(1)), ("ok", Given::Double(1.0))])
}

const FIND: &str = "find c {name: ?, age: {$gt: ?}}";

#[test]
fn commands_in_any_order() {
    let mut script = Script::new();
    script
        .receive(find(1))
        .receive([find(2), find(3)].concat())
        .send(fine(3))
        .send(&fine(1)[..16])
        .send(&fine(1)[16..])
        .receive(find(4))
        .send([fine(4), fine(2)].concat());
    let expected = [
        span(FIND, 20, 30),
        span(FIND, 10, 50),
        span(FIND, 60, 70),
        span(FIND, 20, 70),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.gaps(), 0);
}

#[test]
fn names_have_the_shape_of_the_filter() {
    let filtered = |n| document(&[("q", Given::Document(document(&[("_id", Given::Int(n))])))]);
    let update = document(&[("update", Given::Text("c")), ("ordered", Given::Int(1))]);
    let update = [
        one(&update),
        several("updates", &[filtered(1), filtered(2)]),
    ]
    .concat();
    let array = document(&[("0", Given::Document(filtered(1)))]);
    let delete = document(&[
        ("delete", Given::Text("c")),
        ("deletes", Given::Array(array)),
    ]);
    let insert = document(&[("insert", Given::Text("c"))]);
    // The documents may come first.
    let insert = [several("documents", &[filtered(1)]), one(&insert)].concat();
    let stage = document(&[("$match", Given::Document(document(&[("a", Given::Null)])))]);
    let pipeline = document(&[("0", Given::Document(stage))]);
    let aggregate = document(&[
        ("aggregate", Given::Text("c")),
        ("pipeline", Given::Array(pipeline)),
    ]);
    let more = document(&[
        ("getMore", Given::Long(7)),
        ("collection", Given::Text("c")),
    ]);
    // The value is no name of a collection.
    let user = document(&[
        ("createUser", Given::Text("alice")),
        ("pwd", Given::Text("x")),
    ]);
    let odd = document(&[("an odd name", Given::Int(1))]);
    let commands = [
        (update, "update c {_id: ?}, ..."),
        (one(&delete), "delete c {_id: ?}"),
        (insert, "insert c"),
        (one(&aggregate), "aggregate c [{$match: {a: ?}}]"),
        (one(&more), "getMore c"),
        (one(&user), "createUser"),
        (one(&odd), "OP_MSG"),
    ];
    let mut script = Script::new();
    script.receive(find(1)).send(fine(1));
    for (sections, _) in &commands {
        // With a checksum behind the sections.
        script
            .receive(sent(5, CHECKSUM, &[sections, &[9; 4]]))
            .send(fine(5));
    }
    let mut expected = vec![FIND];
    expected.extend(commands.iter().map(|(_, name)| *name));
    assert_eq!(script.names(), expected);
    let kept = format!("{:?}", script.done);
    for secret in ["secret", "alice"] {
        assert!(!kept.contains(secret), "{kept}");
    }
}

#[test]
fn errors_of_commands_and_of_writes() {
    let error = |code, name: &'static str| {
        vec![
            ("ok", Given::Double(0.0)),
            ("errmsg", Given::Text("dup key: { _id: 1 }")),
            ("code", Given::Int(code)),
            ("codeName", Given::Text(name)),
        ]
    };
    let within = document(&[
        ("index", Given::Int(0)),
        ("code", Given::Int(11000)),
        ("errmsg", Given::Text("E11000")),
    ]);
    let errors = document(&[("0", Given::Document(within))]);
    let concern = document(&[("code", Given::Int(64))]);
    let mut script = Script::new();
    script
        .receive(find(1))
        .send(answer(1, &error(26, "NamespaceNotFound")))
        .receive(find(2))
        .send(answer(
            2,
            &[("writeErrors", Given::Array(errors)), ("ok", Given::Int(1))],
        ))
        .receive(find(3))
        .send(answer(
            3,
            &[
                ("ok", Given::Int(1)),
                ("writeConcernError", Given::Document(concern)),
            ],
        ));
    let expected = [
        failed(FIND, 10, 20, "26"),
        failed(FIND, 30, 40, "11000"),
        failed(FIND, 50, 60, "64"),
    ];
    assert_eq!(script.spans(), expected);
    let name = Attribute::Text("NamespaceNotFound".into());
    assert!(
        script.done[0]
            .request
            .attributes
            .contains(&("error.type", name))
    );
}

#[test]
fn hello_as_drivers_send_it_first() {
    let body = document(&[("ismaster", Given::Int(1))]);
    let query = [&[0; 4], &b"admin.$cmd\0"[..], &[0; 8], &body].concat();
    let reply = [&[0; 20][..], &document(&[("ok", Given::Double(1.0))])].concat();
    let failed_reply = [&[0; 20][..], &document(&[("ok", Given::Double(0.0))])].concat();
    let mut script = Script::new();
    script
        .receive(framed(1, 0, QUERY, &query))
        .send(framed(2, 1, REPLY, &reply))
        .receive(framed(3, 0, QUERY, &query))
        .send(framed(4, 3, REPLY, &failed_reply));
    assert_eq!(
        script.spans(),
        [
            span("ismaster", 10, 20),
            failed("ismaster", 30, 40, "ERROR")
        ]
    );
}

#[test]
fn commands_without_response_and_responses_without_command() {
    let insert = document(&[("insert", Given::Text("c"))]);
    let mut script = Script::new();
    script
        .receive(find(1))
        // The second answers none, as the further ones of an exhaust cursor.
        .send([fine(1), fine(901)].concat())
        .receive(sent(2, MORE_TO_COME, &[&one(&insert)]))
        .receive(find(3))
        .send(fine(901))
        .send(fine(3));
    assert_eq!(script.spans(), [span(FIND, 10, 20), span(FIND, 40, 60)]);
    assert_eq!(script.gaps(), 0);
}

#[test]
fn compressed_commands_are_not_named() {
    let inside = [&MSG.to_le_bytes()[..], &[100, 0, 0, 0, 2], &[7; 40]].concat();
    let mut script = Script::new();
    script
        .receive(framed(1, 0, COMPRESSED, &inside))
        .send(framed(9, 1, COMPRESSED, &inside));
    assert_eq!(script.spans(), [span("OP_COMPRESSED", 10, 20)]);
    assert!(script.done[0].request.unread);
}

/// Responses that are larger than the bytes that are read, and requests behind them.
#[test]
fn large_messages() {
    let text = "x".repeat(9000);
    let large = answer(1, &[("a", Given::Text(&text)), ("ok", Given::Int(1))]);
    let body = document(&[("insert", Given::Text("c"))]);
    let insert = sent(
        2,
        0,
        &[
            &one(&body),
            &several("documents", std::slice::from_ref(&large)),
        ],
    );
    let mut script = Script::new();
    script
        .receive(find(1))
        .send(&large[..5000])
        .send(&large[5000..])
        .receive(insert)
        .send(fine(2));
    assert_eq!(
        script.spans(),
        [span(FIND, 10, 30), span("insert c", 40, 50)]
    );
    assert_eq!(script.gaps(), 0);
}

#[test]
fn other_bytes_begin_nothing() {
    assert!(begins(&find(1)));
    for at in 0..21 {
        let mut bytes = find(1);
        bytes[at] = 0xf1;
        // The number of the request may be any, and the message may be larger.
        assert_eq!(
            begins(&bytes),
            (0..3).contains(&at) || (4..8).contains(&at),
            "{at}"
        );
        assert!(!begins(&bytes[..at]), "{at}");
    }
    assert!(!begins(&fine(1)));
}

#[test]
fn texts_are_kept_if_they_are_asked_for() {
    let request = |word: &'static str| {
        let body = document(&[(word, Given::Text("c")), ("pwd", Given::Text("x"))]);
        message(&one(&body), true)
    };
    let text = |request: Request| {
        let mut all = request.attributes.into_iter();
        all.find(|(name, _)| *name == "db.query.text")
            .map(|(_, text)| text)
    };
    let expected = Attribute::Text("{drop: \"c\", pwd: \"x\"}".into());
    assert_eq!(text(request("drop")), Some(expected));
    assert_eq!(text(request("createUser")), None);
}
