//! Error responses of the API.

use axum::{
    Json,
    extract::rejection::BytesRejection,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

/// An error response: a status, and a message with its fix for each mistake.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(skip)]
    status: StatusCode,
    errors: Vec<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Problem {
        Problem { status, errors: vec![why.into()] }
    }

    /// 400: all mistakes of a request.
    pub(crate) fn wrong(errors: Vec<String>) -> Problem {
        Problem { status: StatusCode::BAD_REQUEST, errors }
    }

    /// 404: there is no `what` with this identifier; GET `path` lists the existing ones.
    pub(crate) fn unknown(what: &str, path: &str, id: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("no such {what}; GET {path} lists them: {id}"))
    }

    /// 409: not possible in the present state.
    pub(crate) fn conflict(why: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, why)
    }

    /// 408: the request took too long.
    pub(crate) fn late() -> Problem {
        let why = "no response in time; try again, or see GET /runs and GET /searches for what it began";
        Problem::new(StatusCode::REQUEST_TIMEOUT, why)
    }

    /// 503: something that the request needs is not available.
    pub(crate) fn unavailable(why: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

impl From<BytesRejection> for Problem {
    fn from(why: BytesRejection) -> Problem {
        let text = match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than 16 MiB",
            _ => "the body did not arrive as a whole; send it again",
        };
        Problem::new(why.status(), text)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}
