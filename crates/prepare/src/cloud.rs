//! Object stores of the large clouds, known by the scheme of an address. Credentials come from the environment, under the names that
//! the clouds' own tools use.

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::prelude::SessionContext;

use crate::error::{Error, Result};

/// Makes the store of an address known to a session, if it is one of a cloud.
pub(crate) fn register(context: &SessionContext, url: &ListingTableUrl) -> Result<()> {
    if url.scheme() == "file" {
        return Ok(());
    }
    let (store, _) = object_store::parse_url_opts(url.get_url(), std::env::vars())
        .map_err(|error| Error::Place { place: url.as_str().into(), problem: error.to_string() })?;
    context.register_object_store(url.object_store().as_ref(), store.into());
    Ok(())
}
