// Package report draws a comparison of tiling policies as one HTML page that needs
// no network and no server: the tables, bars of where the time of a step goes, the
// workspace plan, and a timeline to zoom and to pan.
//
// The page holds its data: element "result" the comparison as `atb policies --json`
// prints it, and element "trace" the timeline as package trace writes it, compressed
// with gzip and written in base64.
package report
