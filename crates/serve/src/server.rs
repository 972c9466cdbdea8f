//! Connections, from the first to the last.
//!
//! No request that was received in full is lost at the end, and no client that keeps its connection sees it
//! closed instead of an answer: connections that wait to be accepted are accepted; every answer from then on
//! says `Connection: close`; connections on which nothing comes for a while are closed, since no client can
//! be warned on them.

use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use gct::job::Stop;
use gct::run::Run;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
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
use crate::shape::{BeganWith, Codes, History, Model};
use crate::words::Words;

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// How long a client may take to close its side after ours is closed. What it sends meanwhile is read: if it
/// were not, the operating system would reset the connection, and with it an answer that the client has not
/// read yet.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are read then.
const UNREAD: u64 = 16 << 20;

/// More connections than the standard library lets wait to be accepted.
const BACKLOG: usize = 1024;

/// Bytes of a request's header, all lines together.
const HEADER: usize = 64 << 10;

/// An address that is taken, before there is a model to ask: so that what is wrong with it is said at once.
/// Connections wait.
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
    ending: watch::Sender<bool>,
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
        // They ask the model too, so there are as many as it may have. As many again stand in for those that
        // are busy with something long; more would only share the same cores, and each keeps memory of its
        // own.
        let threads = rayon::current_num_threads();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(threads)
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let (run, metrics) = (Arc::new(run), Arc::new(Metrics::new()));
        let asked = model::Model::load(run.clone())?;
        let layers = asked.layers()?;
        let (queue, worker) = queue::start(asked, limits, metrics.clone())?;
        let codes = run.vocabulary();
        let model = Model {
            model: run.settings().model.name().into(),
            task: run.settings().task.to_string(),
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            labels: run.settings().task.labels(),
            calibrated: run.calibration()?.map(|calibration| calibration.method().to_string()),
            history: History::of(&run.settings().history),
            began_with: run.manifest().init.as_ref().map(BeganWith::of),
            codes: Codes {
                context: codes.context.len(),
                diagnosis: codes.diagnosis.len(),
                treatment: codes.treatment.len(),
                lab: codes.lab.len(),
            },
            width: run.settings().width(),
            layers,
        };
        let (ending, is_ending) = watch::channel(false);
        let router = routes::router(App {
            admission,
            limits,
            bodies: Budget::new(limits.bodies),
            answers: Budget::new(limits.answers),
            words: Words::new(run, &limits),
            queue,
            model,
            page,
            metrics: metrics.clone(),
            log,
            ending: is_ending,
        });
        Ok(Server { listener, address, router, limits, metrics, runtime, worker, ending })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a stop is requested; then answers what it has received, if that does not take too long.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn run(self, stop: &Stop) -> Result<()> {
        let Server { listener, address, router, limits, metrics, runtime, worker, ending } = self;
        let cannot_listen = |source| Error::Listen { address, source };
        let finished = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot_listen)?;
            let door = Door::new(router, limits, metrics, ending.subscribe());
            tokio::select! {
                () = door.accept(&listener) => {}
                () = stopped(stop) => {}
            }
            ending.send_replace(true);
            let listener = listener.into_std().map_err(cannot_listen)?;
            let end = async {
                door.accept_waiting(listener).await;
                drop(door);
                // Every connection has a receiver.
                ending.closed().await;
            };
            Ok::<_, Error>(timeout(limits.shutdown, end).await.is_ok())
        });
        runtime.shutdown_background();
        // If some are not finished, the model may still be at work for them, and nobody waits.
        if finished? && worker.join().is_err() {
            unreachable!("panics of the model's thread are caught");
        }
        Ok(())
    }
}

async fn stopped(stop: &Stop) {
    while !stop.is_requested() {
        sleep(LOOK).await;
    }
}

/// Where connections come in.
struct Door {
    http: http1::Builder,
    router: axum::Router,
    limits: Limits,
    metrics: Arc<Metrics>,
    permits: Arc<Semaphore>,
    ending: watch::Receiver<bool>,
}

impl Door {
    fn new(
        router: axum::Router,
        limits: Limits,
        metrics: Arc<Metrics>,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let mut http = http1::Builder::new();
        // A client may close its sending side after its request, and still wait for the answer.
        http.half_close(true);
        http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEADER);
        let permits = Arc::new(Semaphore::new(limits.connections));
        Door { http, router, limits, metrics, permits, ending }
    }

    /// Accepts as many connections as there may be.
    async fn accept(&self, listener: &tokio::net::TcpListener) {
        loop {
            let permit = self.permits.clone().acquire_owned().await.expect("it is never closed");
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream, Some(permit)),
                // If the operating system has no room for it now, it may have later.
                Err(_) => sleep(LOOK).await,
            }
        }
    }

    /// Accepts those that have connected already, and may have sent a request; not for ever, if others come
    /// faster.
    async fn accept_waiting(&self, listener: TcpListener) {
        for _ in 0..self.limits.connections.max(BACKLOG) {
            // Not through the runtime, which may not have heard of all of them yet.
            let accepted = listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream)
            });
            match accepted {
                Ok(stream) => self.serve(stream, None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => sleep(LOOK).await,
            }
        }
    }

    fn serve(&self, stream: TcpStream, permit: Option<OwnedSemaphorePermit>) {
        let _ = stream.set_nodelay(true);
        // A client that takes nothing of its answer is dropped; what it sends has timeouts of its own.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.request));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self.http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let (metrics, ending, grace) = (self.metrics.clone(), self.ending.clone(), self.limits.grace);
        metrics.connections.inc();
        tokio::spawn(async move {
            serve(connection, ending, grace).await;
            metrics.connections.dec();
            drop(permit);
        });
    }
}

type Stream = Pin<Box<TimeoutStream<TcpStream>>>;
type Connection = http1::Connection<TokioIo<Stream>, TowerToHyperService<axum::Router>>;

/// Answers the requests of a connection, and closes it. Clients go away in the middle of things; that is
/// their right.
async fn serve(mut connection: Connection, mut ending: watch::Receiver<bool>, grace: Duration) {
    let grace_is_over = async {
        let _ = ending.wait_for(|is_ending| *is_ending).await;
        sleep(grace).await;
    };
    tokio::select! {
        // What has arrived comes before the end of the grace.
        biased;
        _ = poll_fn(|context| connection.poll_without_shutdown(context)) => {}
        () = grace_is_over => {
            Pin::new(&mut connection).graceful_shutdown();
            let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
        }
    }
    close(connection.into_parts().io.into_inner()).await;
}

async fn close(mut stream: Stream) {
    let read_rest = async {
        stream.shutdown().await?;
        io::copy(&mut stream.take(UNREAD), &mut io::sink()).await
    };
    let _ = timeout(LINGER, read_rest).await;
}
