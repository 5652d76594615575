//! The same servers for tokio: as straight, with the same buffers and system calls per request.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn listen<F: Future<Output = ()> + 'static>(serve: impl Fn(TcpStream) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("sockets can be");
        let listener = TcpListener::from_std(listener).expect("the runtime takes it");
        println!("listening on port {} with tokio", listener.local_addr().expect("it is bound").port());
        std::io::stdout().flush().expect("the harness reads");
        loop {
            let (stream, _) = listener.accept().await.expect("connections come");
            stream.set_nodelay(true).expect("sockets can be");
            tokio::task::spawn_local(serve(stream));
        }
    });
}

pub(crate) fn echo() {
    listen(|mut stream| async move {
        let mut buffer = [0; 4096];
        while let Ok(count) = stream.read(&mut buffer).await {
            if count == 0 || stream.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    });
}

/// One request after the other; the file is opened and read for each, as ours does.
pub(crate) fn httpd(folder: &str) {
    let folder = folder.to_owned();
    listen(move |mut stream| {
        let folder = folder.clone();
        async move {
            let mut head = Vec::with_capacity(8192);
            let mut buffer = [0; 8192];
            loop {
                let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
                    match stream.read(&mut buffer).await {
                        Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                    continue;
                };
                let answer = answer(&folder, &head[..end]);
                head.drain(..end + 4);
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    });
}

fn answer(folder: &str, head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let path = text.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
    let mut body = Vec::new();
    let found = File::open(Path::new(folder).join(path)).and_then(|mut file| {
        let status = file.metadata()?;
        body.reserve(status.len() as usize + 1);
        file.read_to_end(&mut body)
    });
    let status = if found.is_ok() { "200 OK" } else { "404 Not Found" };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: keep-alive\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    answer
}
