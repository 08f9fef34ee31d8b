// Colly crawls one site, or many hosts politely; every page's body becomes a file.
//
//	colly mirror URL FOLDER AT_ONCE
//	colly broad SEEDS FOLDER DELAY_MS
//
// Set up as its documentation says for speed: asynchronous, a LimitRule for how many requests run at once, no cookies.
// robots.txt is obeyed. The frontier and what was visited are in memory, which is what it comes with.
package main

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	number, err := strconv.Atoi(os.Args[4])
	if err != nil {
		panic(err)
	}
	switch os.Args[1] {
	case "mirror":
		mirror(os.Args[2], os.Args[3], number)
	case "broad":
		broad(os.Args[2], os.Args[3], time.Duration(number)*time.Millisecond)
	}
}

func mirror(start, folder string, atOnce int) {
	home, err := url.Parse(start)
	if err != nil {
		panic(err)
	}
	transport := roomyTransport(atOnce)
	collector := collectorOf(home, transport, &colly.LimitRule{DomainGlob: "*", Parallelism: atOnce})
	collector.OnResponse(func(page *colly.Response) { keep(page, filepath.Join(folder, page.Request.URL.Path)) })
	collector.Visit(start)
	collector.Wait()
}

// One collector a host: a LimitRule is shared by all domains that its glob matches.
func broad(seeds, folder string, delay time.Duration) {
	text, err := os.ReadFile(seeds)
	if err != nil {
		panic(err)
	}
	transport := roomyTransport(1)
	collectors := []*colly.Collector{}
	for _, seed := range strings.Fields(string(text)) {
		home, err := url.Parse(seed)
		if err != nil {
			panic(err)
		}
		collector := collectorOf(home, transport, &colly.LimitRule{DomainGlob: "*", Parallelism: 1, Delay: delay})
		collector.OnResponse(func(page *colly.Response) { keep(page, hashed(folder, page.Request.URL.String())) })
		collectors = append(collectors, collector)
		go collector.Visit(seed)
	}
	for _, collector := range collectors {
		collector.Wait()
	}
	time.Sleep(time.Hour) // until it is stopped
}

func collectorOf(home *url.URL, transport *http.Transport, limit *colly.LimitRule) *colly.Collector {
	collector := colly.NewCollector(colly.Async(true), colly.AllowedDomains(home.Hostname()))
	collector.IgnoreRobotsTxt = false
	collector.DisableCookies()
	collector.WithTransport(transport)
	collector.SetRequestTimeout(30 * time.Second)
	if err := collector.Limit(limit); err != nil {
		panic(err)
	}
	collector.OnHTML("a[href], area[href]", func(link *colly.HTMLElement) {
		// left in, a fragment makes another URL: pages were asked for three times
		href, _, _ := strings.Cut(link.Attr("href"), "#")
		if href != "" {
			link.Request.Visit(href)
		}
	})
	return collector
}

func roomyTransport(perHost int) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		MaxIdleConns:        100000,
		MaxIdleConnsPerHost: perHost,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

func keep(page *colly.Response, path string) {
	if !strings.Contains(page.Headers.Get("Content-Type"), "text/html") {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		panic(err)
	}
	if err := os.WriteFile(path, page.Body, 0o644); err != nil {
		panic(err)
	}
}

// Hosts may have the same paths, and a path may be another's folder: a file is named by a hash of the whole URL.
func hashed(folder, address string) string {
	sum := fnv.New64a()
	sum.Write([]byte(address))
	name := fmt.Sprintf("%016x.html", sum.Sum64())
	return filepath.Join(folder, name[:2], name)
}
