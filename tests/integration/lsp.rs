//! `dpm lsp`, as an editor talks to it while a model is written.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::harness::{Folder, finish, json, says, start};

const UNFINISHED: &str = "\
constants {
  real scale;
}
record {
  int<lower=0, upper=1> switched;
  real<lower=0, upper=4> dist;
}
transformed record {
  real d = dist / 2;
}
parameters {
  real alpha;
  vector[2] beta;
}
model {
  alpha ~ normal(0, scale);
  beta ~ normal(0, scale)
  switched ~ bernoulli_logti(alpha + beta[1] * d);
}
";

/// The program with an editor at its other end, and one file.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: i32,
    uri: String,
    version: i32,
    text: String,
}

impl Editor {
    fn start(folder: &Folder) -> Editor {
        let mut command = folder.command("lsp --stdio");
        let mut child = start(command.stdin(Stdio::piped()));
        Editor {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("its output")),
            child,
            asked: 0,
            uri: format!("file://{}", folder.file("m.dpm").display()),
            version: 0,
            text: String::new(),
        }
    }

    fn ready(folder: &Folder) -> Editor {
        let mut editor = Editor::start(folder);
        let answer = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        let input = self.input.as_mut().expect("its input");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it listens");
    }

    fn hear(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a header");
            assert!(!line.is_empty(), "it says no more");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(said) => length = said.parse().expect("a length"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a message");
        json(&String::from_utf8(body).expect("UTF-8"))
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    fn request(&mut self, method: &str, params: Value) -> i32 {
        self.asked += 1;
        self.send(json!({ "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    fn response(&mut self, id: i32) -> Value {
        loop {
            let said = self.hear();
            if said["id"] == id {
                return said;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.response(id);
        assert_eq!(response["error"], Value::Null, "{method}");
        response["result"].clone()
    }

    /// The code and the message of a refusal.
    fn is_refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.request(method, params);
        let error = self.response(id)["error"].clone();
        let message = error["message"].as_str().expect("a message").to_owned();
        (error["code"].as_i64().expect("a code"), message)
    }

    /// Waits for the diagnostics of the present text.
    fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let said = self.hear();
            let params = &said["params"];
            if said["method"] == "textDocument/publishDiagnostics"
                && params["version"] == self.version
                && params["uri"] == self.uri
            {
                return params["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    fn codes(&mut self) -> Vec<String> {
        let said = self.diagnostics();
        said.iter().map(|d| text_of(&d["code"])).collect()
    }

    fn open(&mut self, text: &str) {
        self.text = text.to_owned();
        self.version = 1;
        let item = json!({
            "uri": self.uri, "languageId": "dpm", "version": 1, "text": text,
        });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
    }

    fn edit(&mut self, old: &str, new: &str) {
        assert!(self.text.contains(old), "{old}");
        self.text = self.text.replacen(old, new, 1);
        self.version += 1;
        let change = json!({
            "textDocument": { "uri": self.uri, "version": self.version },
            "contentChanges": [{ "text": self.text }],
        });
        self.tell("textDocument/didChange", change);
    }

    /// The parameters of a request about the first place of `mark`, or its end.
    fn at(&self, mark: &str, more: Value) -> Value {
        let start = self.text.find(mark).expect(mark);
        let before = &self.text[..start];
        let line = before.rsplit('\n').next().unwrap_or_default();
        let mut params = json!({
            "textDocument": { "uri": self.uri },
            "position": {
                "line": before.matches('\n').count(),
                "character": line.encode_utf16().count(),
            },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    }

    /// The text with edits applied, the last of them first. Lines are of ASCII.
    fn with(&self, edits: &Value) -> String {
        let place = |p: &Value| {
            let line = p["line"].as_u64().expect("a line") as usize;
            let lines = self.text.split_inclusive('\n').take(line);
            lines.map(str::len).sum::<usize>() + p["character"].as_u64().expect("one") as usize
        };
        let mut text = self.text.clone();
        for edit in edits.as_array().expect("edits").iter().rev() {
            let range = place(&edit["range"]["start"])..place(&edit["range"]["end"]);
            text.replace_range(range, edit["newText"].as_str().expect("a text"));
        }
        text
    }

    fn changes(&self, edit: &Value) -> String {
        self.with(&edit["changes"][&self.uri])
    }

    fn leave(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        let (code, _) = self.is_refused("textDocument/hover", json!({}));
        assert_eq!(code, -32600);
        self.tell("exit", Value::Null);
        self.ends_with(0);
    }

    fn ends_with(mut self, code: i32) {
        self.input = None;
        assert_eq!(finish(self.child).code, code);
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn labels(items: &Value) -> Vec<String> {
    let items = items.as_array().expect("a list").iter();
    items.map(|item| text_of(&item["label"])).collect()
}

#[test]
fn a_model_is_written_with_its_help() {
    let folder = Folder::new();
    folder.write("m.dpm", UNFINISHED);
    folder.write("m.constants.json", "{\"scale\": 2}");
    let checked = json(&folder.dpm("check m.dpm --format json").out);
    let mut editor = Editor::ready(&folder);
    editor.open(UNFINISHED);

    // What `dpm check` says.
    let said = editor.diagnostics();
    let by_check = checked["diagnostics"].as_array().expect("a list");
    assert_eq!(said.len(), by_check.len());
    for (d, c) in said.iter().zip(by_check) {
        assert_eq!(d["code"], c["code"]);
        assert_eq!(d["severity"], 1);
        let start = &d["range"]["start"];
        assert_eq!(start["line"].as_u64().map(|n| n + 1), c["line"].as_u64());
        assert_eq!(
            start["character"].as_u64().map(|n| n + 1),
            c["column"].as_u64()
        );
    }
    let about = &said[1];
    assert_eq!(about["code"], "E0126");
    assert!(text_of(&about["message"]).contains("did you mean `bernoulli_logit`?"));

    // With errors, names are known all the same.
    let hover = |editor: &mut Editor, mark: &str| {
        let params = editor.at(mark, Value::Null);
        text_of(&editor.ask("textDocument/hover", params)["contents"]["value"])
    };
    let dist = hover(&mut editor, "dist / 2");
    assert!(dist.contains("real<lower=0, upper=4> dist"), "{dist}");
    assert!(dist.contains("record column, **private**"), "{dist}");
    let derived = hover(&mut editor, "d = dist");
    assert!(derived.contains("**private** (stage record)"), "{derived}");
    let beta = hover(&mut editor, "beta[1]");
    assert!(
        beta.contains("vector[2] beta") && beta.contains("public"),
        "{beta}"
    );
    let normal = hover(&mut editor, "normal(0");
    says(&normal, "normal_lpdf(real y | real mu, real sigma)");

    // The suggestion is taken, and the semicolon typed.
    let actions = json!({ "range": about["range"], "context": { "diagnostics": [] } });
    let params = editor.at("bernoulli", actions);
    let actions = editor.ask("textDocument/codeAction", params);
    let mended = editor.changes(&actions[0]["edit"]);
    let whole = editor.text.clone();
    editor.edit(&whole, &mended);
    assert_eq!(editor.codes(), ["S002"]);
    editor.edit("scale)\n  switched", "scale);\n  switched");
    assert_eq!(editor.codes(), [""; 0]);

    // A statement more, letter by letter.
    editor.edit(
        "d);\n}\n",
        "d);\n}\ngenerated quantities {\n  real z = normal_r\n}\n",
    );
    let end = editor.text.find("normal_r\n").expect("it is there") + "normal_r".len();
    let column = end - editor.text[..end].rfind('\n').expect("a line") - 1;
    let mut params = editor.at("normal_r\n", Value::Null);
    params["position"]["character"] = column.into();
    let offered = editor.ask("textDocument/completion", params);
    let offered = labels(&offered);
    for (name, there) in [
        ("normal_rng", true),
        ("alpha", true),
        ("exp", true),
        ("dist", false),
    ] {
        assert_eq!(offered.iter().any(|l| l == name), there, "{name}");
    }
    editor.edit("normal_r\n", "normal_rng(alpha, 1);\n");
    assert_eq!(editor.codes(), [""; 0]);
    let params = editor.at("bernoulli", Value::Null);
    let offered = editor.ask("textDocument/completion", params);
    assert!(labels(&offered).contains(&"bernoulli_logit".to_owned()));

    // Names: where they come from, where they are, and others for them.
    let params = editor.at(
        "beta[1]",
        json!({ "context": { "includeDeclaration": false } }),
    );
    let found = editor.ask("textDocument/definition", params.clone());
    assert_eq!(
        found[0]["range"]["start"],
        json!({ "line": 12, "character": 12 })
    );
    let found = editor.ask("textDocument/references", params.clone());
    assert_eq!(found.as_array().map(Vec::len), Some(2));
    let found = editor.ask("textDocument/documentHighlight", params.clone());
    assert_eq!(found.as_array().map(Vec::len), Some(3));
    let prepared = editor.ask("textDocument/prepareRename", params);
    assert_eq!(prepared["placeholder"], "beta");
    let params = editor.at("beta[1]", json!({ "newName": "slope" }));
    let edit = editor.ask("textDocument/rename", params);
    assert_eq!(editor.changes(&edit), editor.text.replace("beta", "slope"));
    for (mark, name, words) in [
        ("beta[1]", "alpha", "declared twice"),
        ("beta[1]", "model", "is not a name"),
        ("normal(0", "gauss", "not declared"),
    ] {
        let params = editor.at(mark, json!({ "newName": name }));
        let (code, said) = editor.is_refused("textDocument/rename", params);
        assert!(code == -32803 && said.contains(words), "{said}");
    }

    let document = json!({ "textDocument": { "uri": editor.uri } });
    let parts = editor.ask("textDocument/documentSymbol", document);
    let names: Vec<String> = parts
        .as_array()
        .expect("blocks")
        .iter()
        .map(|p| text_of(&p["name"]))
        .collect();
    assert_eq!(names[2..4], ["transformed record", "parameters"]);
    assert_eq!(parts[3]["children"][1]["name"], "beta");

    // Form, and how far a record can move the likelihood.
    let options = json!({ "options": { "tabSize": 8, "insertSpaces": false } });
    editor.edit("  real d =", "real   d=");
    let params = editor.at("record", options);
    let edits = editor.ask("textDocument/formatting", params.clone());
    let formed = editor.with(&edits);
    assert!(formed.contains("\n  real d = dist / 2;\n"), "{formed}");
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let asked = editor.at("record", json!({ "range": range }));
    let hints = editor.ask("textDocument/inlayHint", asked.clone());
    folder.write("m.dpm", &editor.text);
    let checked = folder.succeeds("check m.dpm").out;
    let hint = text_of(&hints[0]["tooltip"]);
    assert!(
        checked.contains(hint.lines().next().expect("a line")),
        "{hint}\n{checked}"
    );
    assert!(text_of(&hints[0]["label"]).starts_with("sensitivity \u{2264} "));
    assert_eq!(hints.as_array().map(Vec::len), Some(1));

    // What cannot be read has no form and no bounds.
    editor.edit("model {", "model { (");
    assert_eq!(editor.ask("textDocument/formatting", params), json!([]));
    assert_eq!(editor.ask("textDocument/inlayHint", asked), json!([]));
    editor.leave();
}

#[test]
fn constants_that_do_not_fit_are_said_and_those_that_are_not_there_are_not() {
    let folder = Folder::new();
    let mut editor = Editor::ready(&folder);
    let right = UNFINISHED
        .replace("scale)\n", "scale);\n")
        .replace("logti", "logit");
    editor.open(&right);
    assert_eq!(editor.codes(), [""; 0]);
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let params = editor.at("record", json!({ "range": range }));
    assert_eq!(editor.ask("textDocument/inlayHint", params), json!([]));
    folder.write("m.constants.json", "{\"scale\": [1, 2]}");
    editor.edit("scale;", "scale; ");
    assert_eq!(editor.codes(), [""; 0]);
    assert_eq!(editor.codes(), ["E0300"]);
    // Nor do they stay, once the file is mended.
    let changed = json!({ "changes": [] });
    for (file, codes) in [
        ("{\"scale\": 2}", &[][..]),
        ("{\"scale\": ", &["E0300"]),
        ("{\"scale\": 3}", &[]),
    ] {
        folder.write("m.constants.json", file);
        editor.tell("workspace/didChangeWatchedFiles", changed.clone());
        assert_eq!(editor.codes(), codes, "{file}");
    }
    let hints = |editor: &mut Editor| {
        let params = editor.at("record", json!({ "range": range }));
        let hints = editor.ask("textDocument/inlayHint", params);
        hints.as_array().expect("a list").len()
    };
    assert_eq!(hints(&mut editor), 1);
    folder.write("m.constants.json", "{}");
    let saved = editor.at("record", json!({}));
    editor.tell("textDocument/didSave", saved);
    assert_eq!(editor.codes(), ["E0300"]);
    assert_eq!(hints(&mut editor), 0);
    editor.leave();
}

#[test]
fn places_are_counted_as_the_editor_counts() {
    let source =
        "// \u{1F600}\r\nrecord {\r\n  real<lower=0, upper=1> y; /* \u{1F600} */ real x\r\n}\r\n";
    for (offered, chosen, column) in [
        (json!(["utf-16"]), "utf-16", 43),
        (json!(["utf-8", "utf-16"]), "utf-8", 45),
        (json!(["utf-7", "utf-32"]), "utf-32", 42),
    ] {
        let folder = Folder::new();
        let mut editor = Editor::start(&folder);
        let capabilities = json!({ "general": { "positionEncodings": offered } });
        let answer = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(answer["capabilities"]["positionEncoding"], chosen);
        editor.open(source);
        let said = editor.diagnostics();
        assert_eq!(said[0]["code"], "S002");
        assert_eq!(
            said[0]["range"]["start"],
            json!({ "line": 2, "character": column })
        );
        editor.leave();
    }
}

#[test]
fn the_conversation_keeps_its_rules() {
    let folder = Folder::new();
    let mut editor = Editor::start(&folder);
    let place = json!({ "textDocument": { "uri": "file:///nowhere.dpm" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(
        editor.is_refused("textDocument/hover", place.clone()).0,
        -32002
    );
    editor.ask("initialize", json!({ "capabilities": {} }));
    assert_eq!(
        editor
            .is_refused("initialize", json!({ "capabilities": {} }))
            .0,
        -32600
    );
    assert_eq!(editor.is_refused("textDocument/hover", place).0, -32602);
    assert_eq!(
        editor.is_refused("textDocument/hover", json!([1])).0,
        -32602
    );
    assert_eq!(editor.is_refused("dpm/nothing", json!({})).0, -32601);
    editor.tell("dpm/nothing", json!({}));
    editor.tell("textDocument/didChange", json!({ "textDocument": 1 }));

    // Two files, of which one is a table.
    editor.open("model { }\n");
    assert_eq!(editor.codes(), ["E0110"]);
    let first = editor.uri.clone();
    editor.uri = format!("{first}2");
    editor.open("age,income\n61,7\n");
    assert_eq!(editor.codes(), ["S010"]);
    for (line, character) in [(0, 0), (0, 999), (999, 0), (1, 2)] {
        let mut params = editor.at("age", json!({ "newName": "x" }));
        params["position"] = json!({ "line": line, "character": character });
        for method in ["hover", "completion", "definition", "documentHighlight"] {
            editor.ask(&format!("textDocument/{method}"), params.clone());
        }
        assert_eq!(editor.is_refused("textDocument/rename", params).0, -32803);
    }

    // A request that is no longer wanted is answered, one way or the other.
    let params = editor.at("age", Value::Null);
    let id = editor.request("textDocument/hover", params);
    editor.tell("$/cancelRequest", json!({ "id": id }));
    let error = editor.response(id)["error"]["code"].clone();
    assert!(error == Value::Null || error == -32800, "{error}");

    let closed = json!({ "textDocument": { "uri": first } });
    editor.tell("textDocument/didClose", closed);
    let said = editor.hear();
    assert_eq!(said["params"], json!({ "uri": first, "diagnostics": [] }));
    editor.leave();

    let mut left = Editor::ready(&folder);
    left.tell("exit", Value::Null);
    left.ends_with(1);
    Editor::ready(&folder).ends_with(1);
}
