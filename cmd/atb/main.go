// Command atb runs models, checks conformance, plans memory and shows graphs
// with the operations of GoATB.
//
// Results go to standard output, progress and errors to standard error. The
// exit status is 0 when all is well, 1 when a check or comparison failed and 2
// for wrong usage or input.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// cli is the command line.
type cli struct {
	Generate generateCmd `cmd:"" help:"Run a Llama model and compare the tiling policies."`
	Check    checkCmd    `cmd:"" help:"Run ATB's operation rows and golden cases."`
	Plan     planCmd     `cmd:"" help:"Plan the memory of buffers with lifetimes."`
	Graph    graphCmd    `cmd:"" help:"Show the kernel graph and workspace plan of a graph."`
	Run      runCmd      `cmd:"" help:"Run a graph on inputs from a file."`
	Compile  compileCmd  `cmd:"" help:"Capture a graph or a model for device-sink ahead of time."`
	Policies policiesCmd `cmd:"" help:"Compare the tiling policies on a simulated accelerator or on the CPU."`
	Roofline rooflineCmd `cmd:"" help:"Measure the machine's limits and what the operations reach of them."`
	Tune     tuneCmd     `cmd:"" help:"Compare what tilings choose with the best that a search finds."`
	Env      envCmd      `cmd:"" help:"Show every configuration variable with value, source and meaning."`
}

// errFailed says that a check or comparison failed: exit status 1.
var errFailed = errors.New("failed")

// output is where a command writes.
type output struct {
	stdout, stderr io.Writer
}

// results is standard output. It keeps the first error, so that results that
// were lost are an error of the command whatever its printing looks at.
type results struct {
	w   io.Writer
	err error
}

func (r *results) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.w.Write(b)
	r.err = err
	return n, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)   // a second interrupt ends the process at once
	signal.Ignore(syscall.SIGPIPE) // a closed pipe is an error of its writer
	code := run(ctx, os.Args[1:], output{os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// exited carries the status of kong's own exits (help) out of the parser.
type exited int

// run parses and runs one command line and returns the exit status. A panic is
// a fault of the program: it ends the command with a line on standard error.
func run(ctx context.Context, args []string, out output) (code int) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case exited:
			code = int(e)
		default:
			fmt.Fprintf(out.stderr, "atb: internal error: %v\n", e)
			code = exitUsage
		}
	}()
	res := &results{w: out.stdout}
	out.stdout = res
	var c cli
	parser, err := kong.New(&c, kong.Name("atb"),
		kong.Description("Transformer operations with the programming model of Ascend Transformer Boost."),
		kong.Writers(out.stdout, out.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(out))
	if err == nil {
		err = parseAndRun(parser, args)
	}
	if res.err != nil {
		err = fmt.Errorf("standard output: %w", res.err)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		fmt.Fprintln(out.stderr, "atb:", err)
		return exitFailed
	default:
		fmt.Fprintln(out.stderr, "atb:", err)
		return exitUsage
	}
}

func parseAndRun(parser *kong.Kong, args []string) error {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(joinNegatives(args))
	if err == nil {
		err = refuseEmpty(k)
	}
	if err == nil {
		err = refuseIdle(k)
	}
	if err != nil {
		return fmt.Errorf("%w; see atb --help", err)
	}
	return k.Run()
}
