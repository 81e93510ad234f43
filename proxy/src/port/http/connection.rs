//! One client that speaks HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::port::http::HttpLimits;
use crate::connection::linger::{abandon, linger};
use crate::connection::memory::Memory;
use crate::connection::span::ConnectionSpan;
use crate::connection::stopping::Stopping;
use crate::connection::stream::Stream;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::port::CutOff;
use crate::port::alarm::Alarm;
use crate::port::http::context::HttpContext;
use crate::port::http::service::HttpService;
use crate::port::http::socket::{Activity, Noted, Socket};
use crate::port::keys::PortKeys;
use crate::users::turns::Line;

/// What a connection is served with.
pub(crate) struct HttpServing {
    /// The port's place in the configuration.
    pub(crate) port: usize,
    /// What the connection's log lines carry.
    pub(crate) span: ConnectionSpan,
    /// Where the client waits until a password is looked at.
    pub(crate) line: Line,
    /// What is in force.
    pub(crate) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// The port, as it is in force.
    pub(crate) keys: Arc<PortKeys>,
    /// What is bounded.
    pub(crate) limits: HttpLimits,
    /// What long answers take their room of.
    pub(crate) memory: Arc<Memory>,
    /// That the program is to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// When a client has taken too long.
struct Alarms {
    activity: Arc<Activity>,
    head: Duration,
    idle: Duration,
    unread: Duration,
    alarm: Alarm,
}

/// How a connection ends.
enum End {
    /// As HTTP has it.
    Orderly,
    /// What came is no request, and was answered so, as far as it could be.
    Fault(hyper::Error),
    /// The client took too long.
    CutOff(CutOff),
}

/// Serves it to its end.
///
/// # Errors
/// The connection broke.
pub(crate) async fn serve(stream: Stream, serving: HttpServing) -> io::Result<()> {
    let HttpServing {
        port,
        span,
        line,
        snapshot,
        keys,
        limits,
        memory,
        stopping,
    } = serving;
    let activity = Arc::new(Activity::new());
    let of_all = keys.port.limits;
    let mut alarms = Alarms {
        activity: Arc::clone(&activity),
        head: Duration::from_millis(limits.request_ms_max),
        idle: Duration::from_secs(of_all.idle_s_max),
        unread: Duration::from_millis(of_all.unread_ms_max),
        alarm: Alarm::default(),
    };
    let socket = Socket::new(stream, Arc::clone(&activity));
    let service = HttpService(Arc::new(HttpContext {
        port,
        line,
        snapshot,
        limits,
        memory,
        activity,
        login_failures: AtomicU32::new(0),
    }));
    // Times are kept here: the library does not tell a silent client from a slow one. It must not gather the answers of a pipeline: it
    // would do so without end. `max_buf_size` bounds what it reads of a head, and what it holds of an answer.
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max)
        .half_close(true)
        .serve_connection(TokioIo::new(socket), service);
    let mut stopping = Stopping::new(stopping);
    let mut is_last = false;
    let end = std::future::poll_fn(|waker| {
        if !is_last && stopping.poll(waker) {
            is_last = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        match Pin::new(&mut connection).poll(waker) {
            Poll::Ready(Ok(())) => Poll::Ready(End::Orderly),
            Poll::Ready(Err(error)) => Poll::Ready(End::Fault(error)),
            Poll::Pending => alarms.poll(waker).map(End::CutOff),
        }
    });
    let end = end.await;
    let is_unread = matches!(end, End::CutOff(CutOff::Unread));
    match end {
        End::Orderly => {}
        End::Fault(error) if error.is_parse() || error.is_parse_too_large() => {
            keys.figures.cut_off(CutOff::Protocol);
            span.in_scope(|| tracing::debug!(%error, "a client of the key port is disconnected"));
        }
        End::Fault(error) => return Err(io::Error::other(error)),
        End::CutOff(why) => {
            keys.figures.cut_off(why);
            span.in_scope(|| tracing::debug!(?why, "a client of the key port is disconnected"));
        }
    }
    let socket = connection.into_parts().io.into_inner();
    if is_unread {
        return abandon(socket.into_stream());
    }
    linger(socket.into_stream()).await
}

impl Alarms {
    /// The first that is set, and why it would ring. A client that waits for keys is not silent.
    fn first(&self, noted: Noted) -> Option<(Instant, CutOff)> {
        let unread = noted.unread_since;
        let unread = unread.map(|since| (since + self.unread, CutOff::Unread));
        let is_waited_for = !noted.is_answering && unread.is_none();
        let head = noted.head_since.filter(|_| is_waited_for);
        let head = head.map(|since| (since + self.head, CutOff::Head));
        let idle = is_waited_for.then(|| (noted.active_at + self.idle, CutOff::Idle));
        let set = [unread, head, idle].into_iter().flatten();
        set.min_by_key(|(at, _)| *at)
    }

    fn poll(&mut self, waker: &mut Context<'_>) -> Poll<CutOff> {
        let first = self.first(self.activity.noted());
        self.alarm.poll(first, waker)
    }
}
