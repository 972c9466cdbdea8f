//! Connections, from the first to the last.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gct::run::Run;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use crate::body::Budget;
use crate::error::{Error, Result};
use crate::guard::Admission;
use crate::metrics::Metrics;
use crate::model;
use crate::page::Page;
use crate::queue;
use crate::routes::{self, App};
use crate::settings::{Limits, Log, Settings};
use crate::shape::{Codes, Model};
use crate::words::Words;

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of a request's header, all lines together.
const HEADER: usize = 64 << 10;

/// An address that is taken, before there is a model to ask: so that what is wrong with it is said at once. Connections wait.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    admission: Admission,
    limits: Limits,
    log: Option<Log>,
}

impl Bound {
    /// Takes the address.
    ///
    /// # Errors
    /// If the address is not free, or it is open to others and there is no token.
    pub fn new(settings: Settings) -> Result<Self> {
        let Settings { listen, token, limits, log } = settings;
        let admission = match token {
            Some(token) => Admission::Token(token),
            None if listen.ip().is_loopback() => Admission::Local(listen.ip()),
            None => return Err(Error::TokenNeeded { address: listen }),
        };
        let cannot_listen = |source| Error::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).map_err(cannot_listen)?;
        listener.set_nonblocking(true).map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        Ok(Bound { listener, address, admission, limits, log })
    }
}

/// A server that listens. Connections wait until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: axum::Router,
    limits: Limits,
    metrics: Arc<Metrics>,
    runtime: Runtime,
    worker: JoinHandle<()>,
}

impl Server {
    /// Loads the model of a run.
    ///
    /// # Errors
    /// If the run cannot be asked by lists of codes.
    pub fn start(run: Run, bound: Bound, page: Option<Page>) -> Result<Self> {
        let Bound { listener, address, admission, limits, log } = bound;
        if run.settings().model.needs_edges() {
            return Err(Error::NeedsEdges { model: run.settings().model.name() });
        }
        // They ask the model too, so there are as many as it may have. As many again stand in for those that are busy with something long;
        // more would only share the same cores, and each keeps memory of its own.
        let threads = rayon::current_num_threads();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(threads)
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let (run, metrics) = (Arc::new(run), Arc::new(Metrics::new()));
        let columns = page.as_ref().map(|page| page.columns.clone()).unwrap_or_default();
        let asked = model::Model::load(run.clone(), columns)?;
        let layers = asked.layers()?;
        let (queue, worker) = queue::start(asked, limits, metrics.clone())?;
        let codes = run.vocabulary();
        let model = Model {
            model: run.settings().model.name().into(),
            task: run.settings().task.to_string(),
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            labels: run.settings().task.labels(),
            codes: Codes {
                diagnosis: codes.diagnosis.len(),
                treatment: codes.treatment.len(),
                lab: codes.lab.len(),
            },
            width: run.settings().model.width(),
            layers,
        };
        let router = routes::router(App {
            admission,
            limits,
            budget: Budget::new(limits.bodies),
            words: Words::new(&run, limits.codes),
            queue,
            model,
            page,
            metrics: metrics.clone(),
            log,
        });
        Ok(Server { listener, address, router, limits, metrics, runtime, worker })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set; then accepts no more, and finishes what it has accepted if that does not take too long.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn run(self, stop: &AtomicBool) -> Result<()> {
        let Server { listener, address, router, limits, metrics, runtime, worker } = self;
        let finished = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)
                .map_err(|source| Error::Listen { address, source })?;
            let connections = GracefulShutdown::new();
            tokio::select! {
                () = accept(&listener, &router, limits, &metrics, &connections) => {}
                () = stopped(stop) => {}
            }
            drop((listener, router));
            Ok::<_, Error>(tokio::time::timeout(limits.shutdown, connections.shutdown()).await.is_ok())
        });
        runtime.shutdown_background();
        // If some are not finished, the model may still be at work for them, and nobody waits.
        if finished? && worker.join().is_err() {
            unreachable!("panics of the model's thread are caught");
        }
        Ok(())
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

async fn accept(
    listener: &tokio::net::TcpListener,
    router: &axum::Router,
    limits: Limits,
    metrics: &Arc<Metrics>,
    connections: &GracefulShutdown,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEADER);
    loop {
        let permit = permits.clone().acquire_owned().await.expect("it is never closed");
        let stream = next(listener).await;
        let _ = stream.set_nodelay(true);
        // A client that takes nothing of its answer is dropped; what it sends has timeouts of its own.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.request));
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = connections.watch(connection);
        let metrics = metrics.clone();
        metrics.connections.inc();
        tokio::spawn(async move {
            // Clients go away in the middle of things; that is their right.
            let _ = connection.await;
            metrics.connections.dec();
            drop(permit);
        });
    }
}

/// The next connection. If the operating system has no room for it now, it may have later.
async fn next(listener: &tokio::net::TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}
