//! Objects of a store, piece by piece. A request has half a minute, and a few minutes with all attempts; a
//! table can take longer.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Bytes that are asked for at once.
const PIECE: u64 = 8 << 20;

/// A store that fetches what is large piece by piece, each with attempts of its own and into memory, so that
/// it does not matter how long whoever reads it takes.
#[derive(Debug)]
pub(crate) struct Pieces {
    store: Arc<dyn ObjectStore>,
    piece: u64,
}

impl Pieces {
    pub(crate) fn of(store: Arc<dyn ObjectStore>) -> Self {
        Pieces { store, piece: PIECE }
    }

    fn only_read(&self, operation: &str) -> Error {
        Error::NotImplemented { operation: operation.into(), implementer: self.to_string() }
    }
}

impl std::fmt::Display for Pieces {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(formatter)
    }
}

#[async_trait]
impl ObjectStore for Pieces {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let asked = match &options.range {
            _ if options.head => return self.store.get_opts(location, options).await,
            Some(GetRange::Bounded(range)) if range.end.saturating_sub(range.start) > self.piece => {
                range.clone()
            }
            Some(_) => return self.store.get_opts(location, options).await,
            None => 0..u64::MAX,
        };
        let about = GetOptions { head: true, range: None, ..options.clone() };
        let GetResult { meta, attributes, .. } = self.store.get_opts(location, about).await?;
        let range = asked.start..asked.end.min(meta.size);
        if range.end.saturating_sub(range.start) <= self.piece {
            return self.store.get_opts(location, options).await;
        }
        // All pieces are of the same object, also if another is put in its place.
        let options = GetOptions { if_match: options.if_match.clone().or(meta.e_tag.clone()), ..options };
        let (store, location, end, piece) = (self.store.clone(), location.clone(), range.end, self.piece);
        let pieces = (range.start..range.end).step_by(piece as usize).map(move |start| {
            let range = Some(GetRange::Bounded(start..end.min(start + piece)));
            let (store, location) = (store.clone(), location.clone());
            let options = GetOptions { range, ..options.clone() };
            async move { store.get_opts(&location, options).await?.bytes().await }
        });
        let payload = GetResultPayload::Stream(stream::iter(pieces).then(|piece| piece).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    // Nothing is written to where tables are read from.

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(self.only_read("put"))
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(self.only_read("put_multipart"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::iter([Err(self.only_read("delete"))]).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(self.only_read("copy"))
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn pieces_are_the_whole() {
        let (memory, path) = (Arc::new(InMemory::new()), Path::from("table.csv"));
        for size in [0, 1, 9, 10, 11, 20, 25_u8] {
            let bytes: Vec<u8> = (0..size).collect();
            memory.put(&path, bytes.clone().into()).await.unwrap();
            let pieces = Pieces { store: memory.clone(), piece: 10 };
            let whole = pieces.get(&path).await.unwrap();
            assert_eq!((whole.meta.size, whole.range.clone()), (u64::from(size), 0..u64::from(size)));
            let parts: Vec<Vec<u8>> = whole.into_stream().map(|part| part.unwrap().to_vec()).collect().await;
            assert!(parts.iter().all(|part| part.len() <= 10));
            assert_eq!(parts.concat(), bytes, "{size}");
            for start in 0..size {
                for end in start + 1..=size + 1 {
                    let found = pieces.get_range(&path, u64::from(start)..u64::from(end)).await.unwrap();
                    assert_eq!(found, bytes[start.into()..end.min(size).into()], "{start} {end} of {size}");
                }
            }
        }
    }

    #[tokio::test]
    async fn pieces_of_two_objects_are_not_mixed() {
        let (memory, path) = (Arc::new(InMemory::new()), Path::from("table.csv"));
        memory.put(&path, vec![1; 25].into()).await.unwrap();
        let mut parts = Pieces { store: memory.clone(), piece: 10 }.get(&path).await.unwrap().into_stream();
        assert_eq!(parts.next().await.unwrap().unwrap(), vec![1; 10]);
        memory.put(&path, vec![2; 25].into()).await.unwrap();
        assert!(matches!(parts.next().await, Some(Err(Error::Precondition { .. }))));
    }
}
