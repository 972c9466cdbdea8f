//! Object stores of the large clouds, known by the scheme of an address. Credentials come from the
//! environment, under the names that the clouds' own tools use.
//!
//! What a store answers can hold keys and more, so a message says what kind of answer it was, its status and
//! its code.

use std::sync::Arc;
use std::time::Duration;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::prelude::SessionContext;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use crate::error::{Error, Result};
use crate::files::causes;
use crate::pieces::Pieces;

/// Makes the store of an address known to a session, if it is one of a cloud, and hands out one to ask what
/// is there. The latter gives up soon: whoever has mistyped an address should not wait for minutes, and
/// whoever has read for hours should not lose that to a minute without a network.
pub(crate) fn register(
    context: &SessionContext,
    url: &ListingTableUrl,
) -> Result<Option<Arc<dyn ObjectStore>>> {
    let soon =
        RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
    let backoff =
        BackoffConfig { init_backoff: Duration::from_secs(1), base: 3.0, ..BackoffConfig::default() };
    let late = RetryConfig { backoff, ..RetryConfig::default() };
    let Some(store) = store(url, late)? else { return Ok(None) };
    context.register_object_store(url.object_store().as_ref(), Arc::new(Pieces::of(store)));
    self::store(url, soon)
}

/// The store of an address, if it is one of a cloud. Of the environment it takes what begins with the name of
/// the cloud.
fn store(url: &ListingTableUrl, retry: RetryConfig) -> Result<Option<Arc<dyn ObjectStore>>> {
    let address = url.as_str();
    let Some(cloud) = Cloud::of(address) else { return Ok(None) };
    let store = match cloud {
        Cloud::Amazon => AmazonS3Builder::from_env().with_url(address).with_retry(retry).build().map(shared),
        Cloud::Google => {
            GoogleCloudStorageBuilder::from_env().with_url(address).with_retry(retry).build().map(shared)
        }
        Cloud::Azure => {
            MicrosoftAzureBuilder::from_env().with_url(address).with_retry(retry).build().map(shared)
        }
    };
    store.map(Some).map_err(|error| {
        let problem = innermost(&error);
        let is_value = problem.starts_with("failed to parse");
        let hint = if is_value { cloud.variables() } else { cloud.credentials() }.into();
        let problem = format!("its store cannot be set up ({problem})");
        Error::Store { path: address.into(), problem, hint }
    })
}

fn shared(store: impl ObjectStore) -> Arc<dyn ObjectStore> {
    Arc::new(store)
}

/// A cloud, by what a user has to say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cloud {
    Amazon,
    Google,
    Azure,
}

impl Cloud {
    fn of(address: &str) -> Option<Cloud> {
        match address.split_once("://")?.0.to_ascii_lowercase().as_str() {
            "s3" => Some(Cloud::Amazon),
            "gs" => Some(Cloud::Google),
            "az" => Some(Cloud::Azure),
            _ => None,
        }
    }

    fn variables(self) -> &'static str {
        match self {
            Cloud::Amazon => "that is the value of a variable of the environment that begins with AWS_",
            Cloud::Google => "that is the value of a variable of the environment that begins with GOOGLE_",
            Cloud::Azure => "that is the value of a variable of the environment that begins with AZURE_",
        }
    }

    fn credentials(self) -> &'static str {
        match self {
            Cloud::Amazon => {
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say who is asking, with keys that expire AWS_SESSION_TOKEN too; a public bucket needs \
                 AWS_SKIP_SIGNATURE=true instead"
            }
            Cloud::Google => {
                "GOOGLE_APPLICATION_CREDENTIALS says which file holds the key; a public bucket needs GOOGLE_SKIP_SIGNATURE=true instead"
            }
            Cloud::Azure => {
                "AZURE_STORAGE_ACCOUNT_NAME says whose container it is, AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN who is asking; a public container needs \
                 AZURE_SKIP_SIGNATURE=true instead of the latter"
            }
        }
    }

    fn whereabouts(self) -> &'static str {
        match self {
            Cloud::Amazon => {
                "AWS_REGION says where the bucket is, AWS_ENDPOINT which server to ask if it is not Amazon's"
            }
            Cloud::Google => "is the name of the bucket right, and is there a network?",
            Cloud::Azure => "AZURE_STORAGE_ACCOUNT_NAME says whose container it is; is there a network?",
        }
    }
}

/// What a cloud's store said of a path, in the user's words; nothing if it was another store.
pub(crate) fn explained(path: Option<&str>, error: &object_store::Error) -> Option<Error> {
    let words = error.to_string();
    let http = http_error(error);
    let cloud = path.and_then(Cloud::of);
    // What all requests to clouds say that were made in vain.
    if cloud.is_none() && http.is_none() && !words.contains("Error performing ") {
        return None;
    }
    let status = between(&words, "status code: ", " ").filter(|status| status.len() == 3);
    let code = between(&words, "<Code>", "</Code>");
    let answer = [status, code].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let credentials = || cloud.map_or("check the credentials", Cloud::credentials).to_owned();
    let whereabouts = || cloud.map_or("is there a network?", Cloud::whereabouts).to_owned();
    let asks_the_machine =
        ["/latest/api/token", "/latest/meta-data", "/computeMetadata/", "/metadata/identity/"];
    let (problem, hint) = match (status, code) {
        _ if asks_the_machine.iter().any(|path| words.contains(path)) => (
            "there are no credentials, neither in the environment nor from the machine".into(),
            credentials(),
        ),
        _ if words.contains("redirect without LOCATION") => {
            ("its bucket is in another region".into(), whereabouts())
        }
        (_, Some("AuthorizationHeaderMalformed" | "PermanentRedirect")) => {
            (format!("its bucket is in another region ({answer})"), whereabouts())
        }
        (_, Some("NoSuchBucket" | "ContainerNotFound")) => {
            (format!("there is no such bucket ({answer})"), whereabouts())
        }
        (Some("401" | "403"), _) => (format!("the object store does not allow it ({answer})"), credentials()),
        (Some("404"), _) => (format!("it is not there ({answer})"), whereabouts()),
        (Some("412"), _) => {
            ("it changed while it was read".into(), "run again once nothing is written there".into())
        }
        (Some(_), _) => (format!("the object store failed ({answer})"), "try again later".into()),
        _ => match http {
            Some(http) if innermost(http).contains("scheme is not allowed") => (
                "its server is to be asked without TLS".into(),
                "AWS_ALLOW_HTTP=true allows that, for a server of your own".into(),
            ),
            Some(http) if http.kind() == HttpErrorKind::Decode => {
                ("what answers there is no object store".into(), whereabouts())
            }
            Some(http) => {
                (format!("the object store cannot be reached ({})", innermost(http)), whereabouts())
            }
            None => ("what answers there is no object store".into(), whereabouts()),
        },
    };
    let path = path.unwrap_or("the tables").to_owned();
    let problem = if std::env::var_os("GCT_ENGINE_ERRORS").is_some() { words } else { problem };
    Some(Error::Store { path, problem, hint })
}

/// The error of the cloud's client that is behind another, if one is.
pub(crate) fn http_error(error: &object_store::Error) -> Option<&HttpError> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// The words of what was wrong first.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// What stands between two marks, if it can be a name or a number.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let found = text.split_once(begin)?.1.split_once(end)?.0;
    (found.len() <= 64 && found.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(found)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use futures::TryStreamExt;

    use super::*;

    /// What is said of a server that gives this answer to everything.
    async fn said(answer: &'static str) -> Error {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", server.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let store = AmazonS3Builder::new()
            .with_endpoint(endpoint)
            .with_allow_http(true)
            .with_bucket_name("hospital")
            .with_access_key_id("AKIASECRET")
            .with_secret_access_key("SECRET")
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .build()
            .unwrap();
        let error = store.list(None).try_collect::<Vec<_>>().await.unwrap_err();
        explained(Some("s3://hospital/eicu"), &error).unwrap()
    }

    #[tokio::test]
    async fn what_a_store_answers_is_told_without_its_words() {
        for (answer, expected, hint) in [
            (
                "HTTP/1.1 404 Not Found\r\n\r\n<Error><Code>NoSuchBucket</Code><BucketName>SECRET</BucketName></Error>",
                "there is no such bucket (404 NoSuchBucket)",
                "AWS_REGION",
            ),
            (
                "HTTP/1.1 403 Forbidden\r\n\r\n<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>",
                "the object store does not allow it (403 InvalidAccessKeyId)",
                "AWS_ACCESS_KEY_ID",
            ),
            (
                "HTTP/1.1 400 Bad Request\r\n\r\n<Error><Code>AuthorizationHeaderMalformed</Code></Error>",
                "its bucket is in another region (400 AuthorizationHeaderMalformed)",
                "AWS_REGION",
            ),
            ("HTTP/1.1 301 Moved Permanently\r\n\r\n", "its bucket is in another region", "AWS_REGION"),
            (
                "HTTP/1.1 503 Slow Down\r\n\r\n<Code>SECRET with spaces</Code>",
                "the object store failed (503)",
                "later",
            ),
            (
                "HTTP/1.1 200 OK\r\n\r\n{\"SECRET\": 1}",
                "what answers there is no object store",
                "AWS_ENDPOINT",
            ),
            ("SECRET", "the object store cannot be reached", "AWS_ENDPOINT"),
        ] {
            let error = said(answer).await;
            let (told, hinted) = (error.to_string(), error.hint());
            assert!(told.starts_with(&format!("cannot read s3://hospital/eicu: {expected}")), "{told}");
            assert!(hinted.contains(hint), "{told}: {hinted}");
            assert!(!told.contains("SECRET") && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn errors_of_other_stores_are_left_as_they_are() {
        let source = Box::new(std::io::Error::other("broken"));
        let error = object_store::Error::NotFound { path: "a.csv".into(), source };
        assert!(explained(Some("data/a.csv"), &error).is_none() && explained(None, &error).is_none());
    }
}
