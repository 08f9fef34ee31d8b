//! spider crawls one site, or many hosts politely, into WARC files.
//!
//!     spider-bench mirror URL FOLDER AT_ONCE
//!     spider-bench broad SEEDS FOLDER DELAY_MS
//!
//! A release build with its default features, which are those for speed, and its own WARC writer. robots.txt is
//! obeyed. What is known is in memory: there is no frontier to go on from.

use spider::tokio;
use spider::utils::warc::WarcConfig;
use spider::website::Website;
use std::time::Duration;

fn website(url: &str, warc: String, at_once: usize, delay: u64) -> Website {
    let mut site = Website::new(url);
    site.with_respect_robots_txt(true)
        .with_user_agent(Some("bench"))
        .with_request_timeout(Some(Duration::from_secs(30)))
        .with_concurrency_limit(Some(at_once))
        .with_delay(delay);
    site.configuration.with_warc(WarcConfig {
        path: warc,
        ..Default::default()
    });
    site
}

async fn broad(seeds: &str, folder: &str, delay: u64) {
    let text = std::fs::read_to_string(seeds).expect("the seeds");
    let mut crawls = tokio::task::JoinSet::new();
    for (number, seed) in text.split_whitespace().enumerate() {
        let mut site = website(seed, format!("{folder}/{number}.warc"), 1, delay);
        crawls.spawn(async move { site.crawl().await });
    }
    while crawls.join_next().await.is_some() {}
    tokio::time::sleep(Duration::from_secs(3600)).await; // until it is stopped
}

#[tokio::main]
async fn main() {
    let given: Vec<String> = std::env::args().collect();
    let [_, work, from, folder, number] = &given[..] else {
        panic!("spider-bench mirror URL FOLDER AT_ONCE, or broad SEEDS FOLDER DELAY_MS")
    };
    let number: u64 = number.parse().expect("a number");
    std::fs::create_dir_all(folder).expect("a folder");
    if work == "broad" {
        return broad(from, folder, number).await;
    }
    let mut site = website(from, format!("{folder}/pages.warc"), number as usize, 0);
    // its archive is written from a channel that forgets pages when it is full: 512 by default
    drop(site.subscribe(16_384));
    site.crawl().await;
    site.unsubscribe();
    finish(&site).await;
}

/// The crawl ends before its archive is written, and nothing tells when that is.
async fn finish(site: &Website) {
    let Some(writer) = site.get_warc_writer() else { return };
    let mut before = u64::MAX;
    while writer.record_count() != before {
        before = writer.record_count();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    writer.flush().await.expect("a flushed archive");
}
