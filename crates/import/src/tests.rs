//! What is imported reads as a plan, and says what the file said.

use plan::{Act, Activity, Environment, Flags, Plan, Request, scenario};

use super::*;

/// Imports a text and reads the scenario.
fn check(text: &str) -> (Imported, Plan) {
    let imported = import("file", text).unwrap();
    let resolve = |_: &str| Ok(vec!["127.0.0.1".parse().unwrap()]);
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let open = |_: &str| Err("no files here".to_owned());
    let plan = scenario::read("load.toml", &imported.scenario, &Flags::default(), &around, &open);
    let plan = plan.unwrap_or_else(|mistakes| {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}\n{}", mistakes.join("\n"), imported.scenario)
    });
    (imported, plan)
}

/// Each request of a plan: `name: METHOD path|header: value|…|body`.
fn requests(plan: &Plan) -> Vec<String> {
    let Activity::Steps { steps, .. } = &plan.populations[0].activity else { panic!("no steps") };
    let text = |name: &str, request: &Request| {
        let fields = request.headers.iter().map(|(name, value)| format!("|{name}: {value}"));
        let body = request.body.as_ref().map_or(String::new(), |body| format!("|{body}"));
        format!("{name}: {} {}{}{body}", request.method, request.path, fields.collect::<String>())
    };
    let of = |step: &plan::Step| match &step.act {
        Act::Request { request, .. } => text(&step.name, request),
        other => panic!("{other:?}"),
    };
    steps.iter().map(of).collect()
}

#[test]
fn commands_of_curl_become_steps() {
    let text = r#"
# first log in
curl 'https://shop.example/login' -X POST -H 'Content-Type: application/json' -H "X-A: b\"c" \
  --data-raw '{"user":{"id":1},"note":"it'\''s {ok}"}' --compressed -k
$ curl -sSLume:secret https://shop.example/items?page=2 -b 'sid=1' -é | jq .
curl https://other.example/ping
curl -G https://shop.example/find -d q=shoes -d n=5 -F file=@a
"#;
    let (imported, plan) = check(text);
    assert_eq!(imported.format, "commands of curl");
    let expected = [
        r#"post-login: POST /login|Accept-Encoding: gzip, deflate, br, zstd|Content-Type: application/json|X-A: b"c|{"user":{"id":1},"note":"it's {{ok}"}"#,
        "get-items: GET /items?page=2|Accept-Encoding: gzip, deflate, br, zstd|Authorization: {env AUTHORIZATION}|Cookie: {env COOKIE}",
        "get-find: GET /find?q=shoes&n=5|Accept-Encoding: gzip, deflate, br, zstd",
    ];
    assert_eq!(requests(&plan), expected);
    assert!(plan.populations[0].tls.insecure && plan.populations[0].target.secure);
    let left = imported.left_out.join("\n");
    for what in [
        "`jq .`",
        "1 request to https://other.example",
        "curl's -F file=@a",
        "curl's -é",
        "AUTHORIZATION",
        "COOKIE",
    ] {
        assert!(left.contains(what), "{what} in:\n{left}");
    }
    assert!(!imported.scenario.contains("me:secret"), "{}", imported.scenario);
    assert!(imported.scenario.contains("redirects = 10"));
}

const HAR: &str = r#"{"log": {"version": "1.2", "entries": [
  {"startedDateTime": "2026-12-01T10:00:00.000Z", "time": 200,
   "request": {"method": "POST", "url": "https://shop.example/login", "httpVersion": "HTTP/2",
     "headers": [{"name": ":authority", "value": "shop.example"}, {"name": "Content-Type", "value": "application/json"}, {"name": "sec-ch-ua", "value": "x"}],
     "postData": {"mimeType": "application/json", "text": "{\"user\":\"ada\"}"}},
   "response": {"status": 200, "content": {"mimeType": "application/json", "text": "{\"user\":{\"token\":\"abcdefgh12345\",\"id\":\"item-99887766\"},\"n\":1}"}}},
  {"startedDateTime": "2026-12-01T10:00:03.250Z", "time": 50,
   "request": {"method": "GET", "url": "https://shop.example/items/item-99887766?x={1}", "headers": [{"name": "Authorization", "value": "Bearer abcdefgh12345"}, {"name": "Cookie", "value": "sid=1"}]},
   "response": {"status": 304, "content": {}}},
  {"startedDateTime": "2026-12-01T10:00:03.400Z", "time": 50,
   "request": {"method": "GET", "url": "https://shop.example/gone", "headers": []}, "response": {"status": 404, "content": {}}},
  {"request": {"method": "GET", "url": "https://cdn.example/a.js", "headers": []}, "response": {"status": 200}},
  {"request": {"method": "GET", "url": "https://shop.example/b", "headers": []}, "response": {"status": 0}},
  {"request": {"method": "GET", "url": "wss://shop.example/ws", "headers": []}, "response": {"status": 101}}
]}}"#;

#[test]
fn a_recorded_visit_has_pauses_and_captured_values() {
    let (imported, plan) = check(HAR);
    let expected = [
        r#"post-login: POST /login|Content-Type: application/json|{"user":"ada"}"#,
        "get-items-var-id: GET /items/{var id}?x=%7B1%7D|Authorization: Bearer {var token}",
        "get-gone: GET /gone",
    ];
    assert_eq!(requests(&plan), expected);
    let population = &plan.populations[0];
    assert!(population.cookies && population.streams.is_some());
    let Activity::Steps { steps, .. } = &population.activity else { panic!() };
    let thinks: Vec<_> = steps.iter().map(|step| step.act.think().max.to_string()).collect();
    assert_eq!(thinks[0], "3s", "from the end of the response: {thinks:?}");
    let Act::Request { request, .. } = &steps[2].act else { panic!() };
    assert_eq!(request.expect.status, Some(404));
    let left = imported.left_out.join("\n");
    for what in ["1 request to https://cdn.example", "1 request without a response", "1 WebSocket:"] {
        assert!(left.contains(what), "{what} in:\n{left}");
    }
}

#[test]
fn a_collection_of_postman_has_its_variables_and_folders() {
    let text = r#"{"info": {"name": "Shop"}, "variable": [{"key": "base", "value": "http://127.0.0.1:8000/api"}],
      "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "t0p-secret"}]},
      "item": [{"name": "Items", "item": [
        {"name": "List all", "event": [{"listen": "test"}], "request": {"method": "GET", "url": {"raw": "{{base}}/items?shop={{shop}}"}, "header": [{"key": "X-Shop", "value": "{{shop}}"}, {"key": "Off", "value": "1", "disabled": true}]}},
        {"name": "List all", "request": {"method": "PUT", "url": "{{base}}/items/1", "header": [],
          "body": {"mode": "raw", "raw": "{\"a\":{\"b\":\"{{shop}}\"}}", "options": {"raw": {"language": "json"}}}}}]},
        {"name": "Form", "request": {"method": "POST", "url": "{{base}}/form", "body": {"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]}}}]}"#;
    let (imported, plan) = check(text);
    let expected = [
        "list-all: GET /api/items?shop={env SHOP}|X-Shop: {env SHOP}|Authorization: {env AUTHORIZATION}",
        r#"list-all-2: PUT /api/items/1|Authorization: {env AUTHORIZATION}|Content-Type: application/json|{"a":{"b":"{env SHOP}"}}"#,
        "form: POST /api/form|Authorization: {env AUTHORIZATION}|Content-Type: application/x-www-form-urlencoded|a=1&b=2",
    ];
    assert_eq!(requests(&plan), expected);
    let left = imported.left_out.join("\n");
    for what in ["1 script before", "variable {{shop}}", "AUTHORIZATION"] {
        assert!(left.contains(what), "{what} in:\n{left}");
    }
    assert!(!imported.scenario.contains("t0p-secret"));
}

#[test]
fn a_collection_whose_server_is_not_known_has_a_stand_in() {
    let (imported, plan) =
        check(r#"{"item": [{"name": "a\nb", "request": {"method": "GET", "url": "{{host}}/a"}}]}"#);
    assert_eq!(requests(&plan), ["a-b: GET /a"]);
    assert_eq!(plan.populations[0].target.origin(), "http://localhost:8080");
    assert!(imported.left_out[0].starts_with("the server, which is a variable"), "{:?}", imported.left_out);
}

#[test]
fn operations_of_openapi_are_steps_and_those_that_change_data_are_comments() {
    let text = r##"{"openapi": "3.0.0", "servers": [{"url": "https://api.example/v1/"}],
      "paths": {"/pets/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
          "get": {"operationId": "getPet", "summary": "One\npet", "parameters": [{"$ref": "#/components/parameters/Lang"}, {"name": "x", "in": "query"}]},
          "delete": {"responses": {"204": {}}}},
        "/pets": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}},
      "components": {"parameters": {"Lang": {"name": "lang", "in": "query", "required": true, "example": "en us"}},
        "schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string", "enum": ["dog"]}}, "parent": {"$ref": "#/components/schemas/Pet"}}}},
        "securitySchemes": {"b": {}}}}"##;
    let (imported, plan) = check(text);
    assert_eq!(requests(&plan), ["getpet: GET /v1/pets/1?lang=en%20us"]);
    for line in [
        "# One pet\n# id: the document has no example\n[[population.step]]\n",
        "# [[population.step]]\n# name = \"delete-v1-pets-1\"\n# request = \"DELETE /v1/pets/1\"\n",
        "# request = \"POST /v1/pets\"\n",
        r#""tags":["dog"]"#,
    ] {
        assert!(imported.scenario.contains(line), "{line} in:\n{}", imported.scenario);
    }
    let left = imported.left_out.join("\n");
    assert!(left.contains("how to log in") && left.contains("remove the #"), "{left}");
}

#[test]
fn what_cannot_be_imported_says_why() {
    for (text, expected) in [
        (
            "",
            "not a known format; use an HTTP archive (HAR), an OpenAPI document or a Postman collection as JSON, or commands of curl",
        ),
        ("{\"a\": 1}", "JSON of an unknown kind; use"),
        ("{\"a\": ", "not JSON: EOF while parsing"),
        ("openapi: 3.0.0\n", "convert it to JSON first: yq -o json"),
        ("curl 'http://a", "a quote is not closed"),
        (
            "curl -F a=b https://",
            "commands of curl without a request that can be sent: curl's -F a=b; the URL",
        ),
        ("{\"log\": {\"entries\": []}}", "an HTTP archive without a request that can be sent"),
    ] {
        let why = import("file", text).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
}
