package mempool

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"

	"goatb/status"
)

// Picture size in pixels.
const (
	svgWidth, svgHeight = 1200, 700
	svgLeft, svgRight   = 110, 20
	svgTop, svgBottom   = 50, 50
	svgTicks            = 8
)

// WriteSVG draws a plan: nodes from left to right, addresses upwards, one
// labelled rectangle per item that takes room, the lower bound as a dashed line
// and the peak node as a dotted one. Classes paper, axis and name let a page that
// holds the drawing choose other colours for what does not lie on a rectangle and
// for the names that do. Errors: ErrInvalidParam when the counts
// differ, and those of w.
func WriteSVG(w io.Writer, t Table, r Result) error {
	if err := status.Given("write svg", "w", w); err != nil {
		return err
	}
	if len(t.IDs) != len(t.Items) || len(r.Offsets) != len(t.Items) {
		return status.Errorf(status.ErrInvalidParam, "svg: want an id and an offset for each of %d items, got %d and %d", len(t.Items), len(t.IDs), len(r.Offsets))
	}
	out := bufio.NewWriter(w)
	p := newPicture(out, t.Items, r)
	p.frame(r)
	for i := range t.Items {
		if t.Items[i].occupies() {
			p.item(i, t.IDs[i], &t.Items[i], r.Offsets[i])
		}
	}
	p.limits(r)
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// picture maps nodes and bytes to pixels.
type picture struct {
	w          io.Writer
	low, high  int64 // nodes low to high-1 are drawn
	top        int64 // bytes
	perNode    float64
	perByte    float64
	plotBottom float64
}

func newPicture(w io.Writer, items []Item, r Result) *picture {
	p := &picture{w: w, low: math.MaxInt64, high: math.MinInt64, top: max(r.Arena, r.LowerBound, 1), plotBottom: svgHeight - svgBottom}
	for i := range items {
		if it := &items[i]; it.occupies() {
			p.low, p.high = min(p.low, it.First), max(p.high, it.Last+1)
			p.top = max(p.top, r.Offsets[i]+it.Size)
		}
	}
	if p.low > p.high {
		p.low, p.high = 0, 1
	}
	p.perNode = (svgWidth - svgLeft - svgRight) / float64(p.high-p.low)
	p.perByte = (svgHeight - svgTop - svgBottom) / float64(p.top)
	return p
}

func (p *picture) x(node int64) float64 { return svgLeft + float64(node-p.low)*p.perNode }
func (p *picture) y(bytes int64) float64 {
	return p.plotBottom - float64(bytes)*p.perByte
}

func (p *picture) text(x, y float64, anchor, text string) {
	fmt.Fprintf(p.w, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

// frame draws title, axes and ticks.
func (p *picture) frame(r Result) {
	fmt.Fprintf(p.w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		svgWidth, svgHeight, svgWidth, svgHeight)
	fmt.Fprintln(p.w, `<rect class="paper" width="100%" height="100%" fill="white"/>`)
	title := fmt.Sprintf("%d items, arena %d bytes, lower bound %d bytes", len(r.Offsets), r.Arena, r.LowerBound)
	if r.LowerBound > 0 {
		title += fmt.Sprintf(" (%.4f of it)", float64(r.Arena)/float64(r.LowerBound))
	}
	title += ", by " + r.Method
	if r.Optimal {
		title += ", optimal"
	}
	fmt.Fprintf(p.w, `<text x="%d" y="24" font-size="15">%s</text>`+"\n", svgLeft, html.EscapeString(title))
	fmt.Fprintf(p.w, `<path d="M%d %d V%.0f H%d" class="axis" fill="none" stroke="black"/>`+"\n", svgLeft, svgTop, p.plotBottom, svgWidth-svgRight)
	for i := range int64(svgTicks + 1) {
		bytes := tick(0, p.top, i)
		fmt.Fprintf(p.w, `<path d="M%d %.1f h-5" class="axis" stroke="black"/>`+"\n", svgLeft, p.y(bytes))
		p.text(svgLeft-8, p.y(bytes)+4, "end", fmt.Sprint(bytes))
		node := tick(p.low, p.high, i)
		fmt.Fprintf(p.w, `<path d="M%.1f %.1f v5" class="axis" stroke="black"/>`+"\n", p.x(node), p.plotBottom)
		p.text(p.x(node), p.plotBottom+18, "middle", fmt.Sprint(node))
	}
	p.text((svgLeft+svgWidth-svgRight)/2, svgHeight-12, "middle", "node")
	fmt.Fprintf(p.w, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">offset in bytes</text>`+"\n", (svgTop+svgHeight-svgBottom)/2)
}

// tick returns the i-th of svgTicks+1 even points from low to high.
func tick(low, high, i int64) int64 {
	return low + int64(float64(high-low)*float64(i)/svgTicks)
}

// item draws one rectangle, with a label where there is room for it; the whole
// truth is in its tooltip.
func (p *picture) item(i int, id string, it *Item, offset int64) {
	x, y := p.x(it.First), p.y(offset+it.Size)
	width, height := p.x(it.Last+1)-x, p.y(offset)-y
	const goldenAngle = 137.508
	fmt.Fprintf(p.w, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="hsl(%.0f,60%%,75%%)" stroke="#444" stroke-width="0.5"><title>%s: %d bytes at %d, nodes %d to %d</title></rect>`+"\n",
		x, y, width, height, math.Mod(float64(i)*goldenAngle, 360), html.EscapeString(id), it.Size, offset, it.First, it.Last)
	const lineHeight, letterWidth = 12, 6.5
	if height >= lineHeight && width >= letterWidth*float64(len(id)+1) {
		fmt.Fprintf(p.w, `<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x+width/2, y+height/2+4, html.EscapeString(id))
	}
}

// limits draws the lower bound and the peak node over the items.
func (p *picture) limits(r Result) {
	y := p.y(r.LowerBound)
	fmt.Fprintf(p.w, `<path d="M%d %.1f H%d" stroke="red" stroke-dasharray="6 3"/>`+"\n", svgLeft, y, svgWidth-svgRight)
	p.text(svgWidth-svgRight, y-4, "end", fmt.Sprintf("lower bound %d", r.LowerBound))
	if r.PeakAt >= p.low && r.PeakAt < p.high {
		x := p.x(r.PeakAt) + p.perNode/2
		fmt.Fprintf(p.w, `<path d="M%.1f %d V%.0f" class="axis" stroke="black" stroke-dasharray="2 3"/>`+"\n", x, svgTop, p.plotBottom)
		p.text(x, svgTop-6, "middle", fmt.Sprintf("peak at node %d", r.PeakAt))
	}
}
