//! The state of a run's pods, from the API server's objects.

use serde_json::Value;

/// The state of the agents' pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pods {
    pub(super) running: u32,
    /// Reasons why pods do not run yet, with the number of pods.
    pub(super) waiting: Vec<(String, u32)>,
    /// The first pod that will not run: its name and the reason.
    pub(super) failed: Option<(String, String)>,
}

/// Counts the pods by their state.
pub(super) fn count<'a>(pods: impl IntoIterator<Item = &'a Value>) -> Pods {
    let mut counted = Pods::default();
    for pod in pods {
        let name = text(&pod["metadata"]["name"]).unwrap_or("?");
        match text(&pod["status"]["phase"]) {
            Some("Running") => counted.running += 1,
            Some(phase @ ("Failed" | "Succeeded")) => {
                counted.failed.get_or_insert_with(|| (name.to_owned(), end(pod, phase)));
            }
            _ => {
                let why = obstacle(pod);
                match counted.waiting.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, n)) => *n += 1,
                    None => counted.waiting.push((why, 1)),
                }
            }
        }
    }
    counted
}

/// Whether a pod's containers accept connections.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.clone().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Why a pod does not run yet.
pub(super) fn obstacle(pod: &Value) -> String {
    let container = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    if let Some(reason) = text(&container["reason"]) {
        return said(reason, text(&container["message"]));
    }
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let unmet = conditions.clone().find(|condition| condition["status"] == "False");
    match unmet {
        Some(condition) => {
            said(text(&condition["reason"]).unwrap_or("not ready"), text(&condition["message"]))
        }
        None => "not scheduled yet".to_owned(),
    }
}

/// How a pod ended.
fn end(pod: &Value, phase: &str) -> String {
    let status = &pod["status"];
    if let Some(reason) = text(&status["reason"]) {
        return said(reason, text(&status["message"]));
    }
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    match ended["exitCode"].as_i64() {
        Some(code) => said(
            &format!("{}, exit status {code}", text(&ended["reason"]).unwrap_or(phase)),
            text(&ended["message"]),
        ),
        None => phase.to_owned(),
    }
}

fn said(reason: &str, message: Option<&str>) -> String {
    match message.map(str::trim) {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_that_wait_and_that_failed_are_named_with_the_reason() {
        let pod = |name: &str, status: Value| json!({ "metadata": { "name": name }, "status": status });
        let unscheduled = || {
            let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient cpu." });
            json!({ "phase": "Pending", "conditions": [condition] })
        };
        let pulls = json!({ "waiting": { "reason": "ErrImagePull", "message": "not found" } });
        let pods = [
            pod("a-0", json!({ "phase": "Running" })),
            pod("a-1", unscheduled()),
            pod("a-2", unscheduled()),
            pod("a-3", json!({ "phase": "Pending", "containerStatuses": [{ "state": pulls }] })),
            pod("a-4", json!({})),
            pod("a-5", json!({ "phase": "Failed", "reason": "Evicted", "message": "disk pressure" })),
            pod("a-6", json!({ "phase": "Running" })),
        ];
        let expected = Pods {
            running: 2,
            waiting: vec![
                ("Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.".to_owned(), 2),
                ("ErrImagePull: not found".to_owned(), 1),
                ("not scheduled yet".to_owned(), 1),
            ],
            failed: Some(("a-5".to_owned(), "Evicted: disk pressure".to_owned())),
        };
        assert_eq!(count(&pods), expected);
    }

    #[test]
    fn an_agent_that_exited_is_named_with_its_status() {
        let check = |state: Value, expected: &str| {
            let status = json!({ "phase": "Failed", "containerStatuses": [{ "state": state }] });
            let pods = [json!({ "metadata": { "name": "a-0" }, "status": status })];
            assert_eq!(count(&pods).failed, Some(("a-0".to_owned(), expected.to_owned())));
        };
        check(json!({ "terminated": { "exitCode": 3, "reason": "Error" } }), "Error, exit status 3");
        let message = "no connection\n";
        let ended = json!({ "terminated": { "exitCode": 3, "reason": "Error", "message": message } });
        check(ended, "Error, exit status 3: no connection");
        check(json!({}), "Failed");
    }

    #[test]
    fn a_pod_is_ready_when_its_condition_says_so() {
        let pod = |status: &str| {
            json!({ "status": { "conditions": [
            { "type": "Initialized", "status": "True" }, { "type": "Ready", "status": status } ] } })
        };
        assert_eq!(
            (is_ready(&pod("True")), is_ready(&pod("False")), is_ready(&json!({}))),
            (true, false, false)
        );
    }
}
