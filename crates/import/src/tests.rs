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
    for what in
        ["`jq .`", "1 request to https://other.example", "curl's -F", "curl's -é", "AUTHORIZATION", "COOKIE"]
    {
        assert!(left.contains(what), "{what} in:\n{left}");
    }
    assert!(!imported.scenario.contains("me:secret"), "{}", imported.scenario);
    assert!(imported.scenario.contains("redirects = 10"));
}

#[test]
fn options_of_curl_take_their_values_and_only_those() {
    let text = r#"
curl -H 'X-T: {a} {b' --proxy http://me:secret@proxy:1 --ciphers A --tlsv1.2 --new-thing http://a.example/x # why
curl --oauth2-bearer secret -d '-1' -H '-x: 1' --data-raw '@b' 2>/dev/null http://a.example/y > /tmp/out
curl --data-urlencode 'q=a b&c' --data-urlencode '=ä' -d @file.json --data-urlencode n@f a.example/z
curl -H 'Bad Name: 1' -H 'X-Api-Key: secret' -H 'X-CSRF-Token: secret' -d '' http://a.example/
"#;
    let (imported, plan) = check(text);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let expected = [
        "get-x: GET /x|X-T: {{a} {{b".to_owned(),
        format!("post-y: POST /y|Authorization: {{env AUTHORIZATION}}|-x: 1|{form}|-1&@b"),
        format!("post-z: POST /z|{form}|q=a%20b%26c&%C3%A4"),
        format!("post: POST /|X-Api-Key: {{env X_API_KEY}}|X-CSRF-Token: {{env X_CSRF_TOKEN}}|{form}"),
    ];
    assert_eq!(requests(&plan), expected);
    let left = [
        "curl's --proxy",
        "curl's --ciphers",
        "curl's --tlsv1.2",
        "curl's --new-thing",
        "of post-z: its body is the file file.json: set body-file = \"file.json\"",
        "of post-z: its body is the file f: set body-file = \"f\"",
        "of post: the header field \"Bad Name\", which HTTP does not allow",
    ];
    let secret = |line: &&String| line.starts_with("the recorded value of ");
    let (secrets, others): (Vec<&String>, Vec<&String>) = imported.left_out.iter().partition(secret);
    assert_eq!((secrets.len(), others), (3, left.map(str::to_owned).iter().collect()));
    assert!(!imported.scenario.contains("secret,") && !imported.scenario.contains(":secret"));
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
fn a_visit_over_midnight_and_more_values_than_are_captured() {
    let entry = |at: &str, path: &str, response: &str| {
        serde_json::json!({"startedDateTime": at, "time": 0,
            "request": {"method": "GET", "url": format!("https://shop.example/{path}"), "headers": []},
            "response": {"status": 200, "content": {"text": response}}})
    };
    let ids: Vec<String> = (100..170).map(|n| format!("identity-{n}")).collect();
    let mut entries = vec![entry("2026-11-30T23:59:59Z", "a", &serde_json::json!(ids).to_string())];
    entries.extend(ids.iter().map(|id| entry("2026-12-01T01:00:00.050+01:00", id, "")));
    let (imported, plan) = check(&serde_json::json!({"log": {"entries": entries}}).to_string());
    assert!(imported.scenario.contains("think = \"1000ms\""), "{}", imported.scenario);
    let last = requests(&plan)[63..66].join(" ");
    assert!(last.contains("{var value_63}") && !last.contains("{var value_64}"), "{last}");
    assert!(imported.left_out[0].starts_with("6 recorded values, which stay"), "{:?}", imported.left_out);
}

#[test]
fn what_a_scenario_cannot_say_is_written_and_named() {
    let imported = import("file", &format!("curl http://a.example/{}", "x".repeat(9_000))).unwrap();
    assert!(imported.scenario.contains("request = \"GET /xxx"));
    assert!(
        !imported.mistakes.is_empty() && imported.mistakes[0].contains("request"),
        "{:?}",
        imported.mistakes
    );
}

#[test]
fn schemas_in_circles_are_bounded() {
    let members: Vec<String> =
        (0..30).map(|n| format!("\"m{n}\": {{\"$ref\": \"#/components/schemas/A\"}}")).collect();
    let text = format!(
        r##"{{"openapi": "3.0.0", "servers": [{{"url": "https://api.example/"}}], "paths": {{"/a": {{"get": {{}},
          "post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A"}}}}}}}}}}}}}},
          "components": {{"schemas": {{"A": {{"properties": {{{}}}}}}}}}}}"##,
        members.join(",")
    );
    let (imported, _) = check(&text);
    let count = imported.scenario.matches("m29").count();
    assert!((1..1_000).contains(&count), "{count}");
}

#[test]
fn a_collection_of_postman_has_its_variables_and_folders() {
    let text = r#"{"info": {"name": "Shop"}, "variable": [{"key": "base", "value": "http://127.0.0.1:8000/api"}],
      "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "t0p-secret"}]},
      "item": [{"name": "Items", "item": [
        {"name": "List all", "event": [{"listen": "test"}], "request": {"method": "GET", "url": {"raw": "{{base}}/items?shop={{shop}}"}, "header": [{"key": "X-Shop", "value": "{{shop}}"}, {"key": "Off", "value": "1", "disabled": true}]}},
        {"name": "List all", "request": {"method": "PUT", "url": "{{base}}/items/1", "header": [],
          "body": {"mode": "raw", "raw": "{\"a\":{\"b\":\"{{shop}}\",\"id\":\"{{$guid}}\"}}", "options": {"raw": {"language": "json"}}}}}]},
        {"name": "Form", "request": {"method": "POST", "url": "{{base}}/form", "body": {"mode": "urlencoded", "urlencoded": [{"key": "a b", "value": "1&{x}"}, {"key": "b", "value": "{{shop}}"}]}}}]}"#;
    let (imported, plan) = check(text);
    let expected = [
        "list-all: GET /api/items?shop={env SHOP}|X-Shop: {env SHOP}|Authorization: {env AUTHORIZATION}",
        r#"list-all-2: PUT /api/items/1|Authorization: {env AUTHORIZATION}|Content-Type: application/json|{"a":{"b":"{env SHOP}","id":"{uuid}"}}"#,
        "form: POST /api/form|Authorization: {env AUTHORIZATION}|Content-Type: application/x-www-form-urlencoded|a%20b=1%26%7Bx%7D&b={env SHOP}",
    ];
    assert_eq!(requests(&plan), expected);
    let left = imported.left_out.join("\n");
    for what in ["1 script before", "variable {{shop}}", "AUTHORIZATION"] {
        assert!(left.contains(what), "{what} in:\n{left}");
    }
    assert!(!left.contains("guid") && !imported.scenario.contains("t0p-secret"));
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
        ("curl -F a=b https://", "commands of curl without a request that can be sent: curl's -F; the URL"),
        ("{\"log\": {\"entries\": []}}", "an HTTP archive without a request that can be sent"),
    ] {
        let why = import("file", text).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
}
