//! The description of the interface as OpenAPI: `docs/reference/openapi.json`, made of the
//! addresses, the types of parameters and answers, and the text of each address.

mod addresses;

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::access::{Role, SECRET_HEADER};
use crate::api::ADDRESSES;
use crate::error::ErrorAnswer;
use crate::filter::Filter;
use crate::selection::SelectionParams;
use crate::share;

const ARROW: &str = "application/vnd.apache.arrow.stream";

type Typed = fn(&mut SchemaGenerator) -> Schema;

/// The answer of an address.
enum Answer {
    Json(Typed),
    /// Rows as a stream; its metadata, and its columns: lines of `name: meaning`.
    Arrow(Typed, String),
    /// JSON, a value each line.
    Lines(Typed),
    /// A file of HTML.
    File,
}

impl Answer {
    fn arrow<T: JsonSchema>(columns: &str) -> Self {
        Self::Arrow(SchemaGenerator::subschema_for::<T>, columns.to_owned())
    }

    fn lines<T: JsonSchema>() -> Self {
        Self::Lines(SchemaGenerator::subschema_for::<T>)
    }
}

/// An address and its text.
struct Described {
    /// Method and path.
    address: &'static str,
    summary: &'static str,
    text: Cow<'static, str>,
    takes: Vec<Parameters>,
    body: Option<Typed>,
    answer: Option<Answer>,
}

/// A type whose members are parameters.
struct Parameters {
    schema: Typed,
    /// Whether it is the selection, which many addresses share.
    shared: bool,
}

impl Described {
    fn new(
        address: &'static str,
        summary: &'static str,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            address,
            summary,
            text: text.into(),
            takes: Vec::new(),
            body: None,
            answer: None,
        }
    }

    fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes.push(Parameters {
            schema: SchemaGenerator::root_schema_for::<T>,
            shared: T::schema_name() == SelectionParams::schema_name(),
        });
        self
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    fn answer(mut self, answer: Answer) -> Self {
        self.answer = Some(answer);
        self
    }

    fn json<T: JsonSchema>(self) -> Self {
        self.answer(Answer::Json(SchemaGenerator::subschema_for::<T>))
    }
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

/// The generators of a document's schemas.
struct Document {
    /// Of answers.
    sent: SchemaGenerator,
    /// Of bodies and filters, whose optional members may be missing.
    received: SchemaGenerator,
}

impl Document {
    fn new() -> Self {
        let received = settings().for_deserialize();
        let sent = settings()
            .for_serialize()
            .with_transform(fathom_testkit::schema::close);
        Self {
            sent: sent.into_generator(),
            received: received.into_generator(),
        }
    }

    /// The members of a type as parameters of an address.
    fn parameters(schema: Typed) -> Vec<Value> {
        let settings = settings().for_deserialize();
        let mut generator = settings
            .with(|s| s.inline_subschemas = true)
            .into_generator();
        let schema = schema(&mut generator);
        let schema = schema.as_value();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let members = schema["properties"].as_object().unwrap();
        let parameter = |(name, member): (&String, &Value)| {
            let mut member = member.clone();
            let member = member.as_object_mut().unwrap();
            let text = member.remove("description").unwrap_or_default();
            // A parameter without a value is left out.
            if let Some(types) = member.get_mut("type").and_then(Value::as_array_mut) {
                types.retain(|t| t != "null");
                let only = types[0].clone();
                member.insert("type".to_owned(), only);
            }
            member.remove("default");
            let is_required = required.contains(&json!(name));
            json!({ "name": name, "in": "query", "required": is_required, "description": text, "schema": member })
        };
        members.iter().map(parameter).collect()
    }

    /// The window, the number of buckets, and the filter.
    fn selection(&mut self) -> Map<String, Value> {
        let filter = self.received.subschema_for::<Filter>();
        let parameters = Self::parameters(SchemaGenerator::root_schema_for::<SelectionParams>);
        let named = parameters.into_iter().map(|mut parameter| {
            let name = parameter["name"].as_str().unwrap().to_owned();
            if name == "f" {
                let object = parameter.as_object_mut().unwrap();
                object.remove("schema");
                let content = json!({ "application/json": { "schema": filter } });
                object.insert("content".to_owned(), content);
            }
            (name, parameter)
        });
        named.collect()
    }

    fn operation(&mut self, path: &str, role: Role, described: &Described) -> Value {
        let reference = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
        let mut parameters: Vec<Value> = parts(path).into_iter().map(reference).collect();
        for parameter in &described.takes {
            match parameter.shared {
                true => parameters.extend(["from", "to", "pixels", "f"].map(reference)),
                false => parameters.extend(Self::parameters(parameter.schema)),
            }
        }
        let answer = described.answer.as_ref().unwrap();
        let (content, text) = match answer {
            Answer::Json(schema) => {
                let schema = schema(&mut self.sent);
                (
                    json!({ "application/json": { "schema": schema } }),
                    "The answer.",
                )
            }
            Answer::Lines(schema) => {
                let line = schema(&mut self.sent);
                let line = json!({ "anyOf": [line, self.sent.subschema_for::<ErrorAnswer>()] });
                let lines = json!({ "schema": { "type": "string" }, "x-line-schema": line });
                (json!({ "application/x-ndjson": lines }), "Lines of JSON.")
            }
            Answer::Arrow(meta, columns) => {
                let columns: Vec<Value> = columns.lines().map(column).collect();
                let stream = json!({
                    "schema": { "type": "string", "format": "binary" },
                    "x-arrow-metadata": meta(&mut self.sent),
                    "x-arrow-columns": columns,
                });
                let text = "An Arrow IPC stream with some or all of the columns of `x-arrow-columns`. Its schema has metadata `fathom`, a JSON \
                            text that matches `x-arrow-metadata`.";
                (json!({ ARROW: stream }), text)
            }
            Answer::File => {
                let file = json!({ "schema": { "type": "string", "format": "binary" } });
                (
                    json!({ "application/octet-stream": file }),
                    "A file of HTML.",
                )
            }
        };
        let role = role.name();
        let mut operation = json!({
            "security": [{ "token": [role] }, { "proxy": [role] }],
            "operationId": operation_id(described.address),
            "summary": described.summary,
            "description": described.text,
            "parameters": parameters,
            "responses": {
                "200": { "description": text, "content": content },
                "default": { "$ref": "#/components/responses/Error" },
            },
        });
        if let Some(schema) = described.body {
            let schema = schema(&mut self.received);
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        operation
    }

    fn whole(mut self) -> Value {
        let mut paths = Map::new();
        let described = addresses::all();
        for (method, path, role) in served() {
            let address = format!("{method} {path}");
            let mut own = described.iter().filter(|d| d.address == address);
            let text = own
                .next()
                .unwrap_or_else(|| panic!("{address} has no description"));
            assert!(own.next().is_none(), "{address} is described twice");
            let operation = self.operation(path, role, text);
            let entry = paths.entry(path).or_insert_with(|| json!({}));
            entry[method] = operation;
        }
        let operations: usize = paths.values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(
            operations,
            described.len(),
            "an address is described that there is not"
        );
        let mut parameters = self.selection();
        for (name, text) in PARTS {
            let parameter = json!({ "name": name, "in": "path", "required": true, "description": text, "schema": { "type": "string" } });
            parameters.insert(name.to_owned(), parameter);
        }
        let error = self.sent.subschema_for::<ErrorAnswer>();
        let mut schemas = self.sent.take_definitions(true);
        for (name, schema) in self.received.take_definitions(true) {
            let other = schemas.insert(name.clone(), schema);
            assert!(other.is_none(), "{name} is both received and sent");
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "HTTP interface of fathom's page",
                "version": env!("CARGO_PKG_VERSION"),
                "summary": "Sessions of fathom over HTTP, as `fathom ui` serves them",
                "description": ABOUT,
                "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
            },
            "servers": [{ "url": "http://127.0.0.1:7327/api", "description": "The usual address; `fathom ui` prints the actual one" }],
            "paths": paths,
            "components": {
                "securitySchemes": {
                    "token": { "type": "http", "scheme": "bearer", "description": TOKEN },
                    "proxy": { "type": "apiKey", "in": "header", "name": SECRET_HEADER, "description": PROXY },
                },
                "parameters": parameters,
                "responses": { "Error": { "description": ERRORS, "content": { "application/json": { "schema": error } } } },
                "schemas": schemas,
            },
        })
    }
}

const ABOUT: &str = "The page and the server use only this interface. Page and server are one binary, so it has no compatibility promise.\n\n\
    Times are nanoseconds since the start of the session (`started_at_ns` of its description, CLOCK_MONOTONIC), as numbers that a double holds \
    exactly. Text that traced programs control (paths, names, arguments) is sent exactly as in the tables. docs/api.md describes what all \
    addresses have in common.";

const TOKEN: &str = "The token in the fragment of the printed address, `#token=...`, which has role `query`, or a token of the access file. The \
    required role is in the list of roles of each address; `record` includes `query`, and `query` includes `look`.";

const PROXY: &str = "The secret of the reverse proxy in the access file, next to the headers with the user and the groups, of which the role \
    follows.";

const ERRORS: &str = "400: bad request; 401: token, or user of the proxy; 403: role, Host, or Origin; 404: no such session or request; 408: time limit; \
    409: not being recorded; 413: body too large; 422: SQL, or a question that is too large; 503: too busy; 500: all others.";

/// Parts of paths.
const PARTS: [(&str, &str); 4] = [
    (
        "id",
        "The session: the name of its folder, as the list has it.",
    ),
    ("rid", "The request: its `rid`, a whole number."),
    ("question", "The name of the question."),
    (
        "name",
        "The device: its name, as the list of devices has it.",
    ),
];

/// The parts of a path that the caller chooses.
fn parts(path: &str) -> Vec<&str> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{'));
    names.filter_map(|name| name.strip_suffix('}')).collect()
}

/// All addresses: method, path, and role.
fn served() -> impl Iterator<Item = (&'static str, &'static str, Role)> {
    let addresses = ADDRESSES.iter().map(|a| (a.method, a.path, a.role));
    addresses.chain([("post", share::ADDRESS, share::ROLE)])
}

fn column(line: &str) -> Value {
    let (name, text) = line
        .split_once(": ")
        .unwrap_or_else(|| panic!("no meaning: {line}"));
    json!({ "name": name, "description": text })
}

/// A name that programs can use: `get /sessions/{id}/top` is `get_session_top`.
fn operation_id(address: &str) -> String {
    let one = address
        .replace("sessions/{id}", "session")
        .replace("requests/{rid}", "request");
    let one = one.replace("devices/{name}", "device");
    let words = one.split([' ', '/']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

#[test]
fn the_document_describes_every_address() {
    let document = Document::new().whole();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let texts = ["summary", "description"].map(|key| &operation[key]);
            let parameters = operation["parameters"].as_array().unwrap();
            let own = parameters.iter().filter(|p| p.get("$ref").is_none());
            let all = texts.into_iter().chain(own.map(|p| &p["description"]));
            for text in all {
                let text = text.as_str().unwrap_or_default();
                assert!(
                    text.len() > 5,
                    "{method} {path}: no description: {operation:#}"
                );
            }
        }
    }
    let mut text = serde_json::to_string_pretty(&document).unwrap();
    text.push('\n');
    fathom_testkit::expect_file("docs/reference/openapi.json", &text);
}
