package sink

import (
	"goatb/status"
	"goatb/tiling/sink/argsformat"
)

// updateArgs is the format of every update.
var updateArgs = argsformat.Format{argsformat.Context(argsformat.TilingKey), argsformat.Context(argsformat.BlockDim)}.String()

// patchKernelArgs puts the address of the tiling data into the arguments of a
// kernel: in place of the tiling behind the last workspace, or there. `more`
// follows it. Errors are ErrInvalidParam: arguments that are empty, cannot be
// read, or have no workspace.
func patchKernelArgs(args string, more ...argsformat.Item) (patched string, replaced bool, err error) {
	f, err := argsformat.Parse(args)
	if err != nil {
		return "", false, err
	}
	if len(f) == 0 {
		return "", false, status.Errorf(status.ErrInvalidParam, "want an args format, got an empty one")
	}
	p := f.Last(argsformat.Workspace)
	if p < 0 {
		return "", false, status.Errorf(status.ErrInvalidParam, "args format %q: want a workspace, behind which the tiling goes", args)
	}
	next := p + 1
	rest := f[next:]
	if replaced = len(rest) > 0 && isTiling(rest[0]); replaced {
		rest = rest[1:]
	}
	out := append(argsformat.Format{}, f[:next]...)
	out = append(out, argsformat.Context(argsformat.TilingData))
	out = append(append(out, more...), rest...)
	return out.String(), replaced, nil
}

func isTiling(it argsformat.Item) bool {
	k := it.AddrType()
	return k == argsformat.Tiling || k == argsformat.TilingFFTS
}

// tilingArgs is the format of a tiling task: `sync` is a placeholder or the flag
// that the function sets.
func tilingArgs(sync argsformat.Item) argsformat.Format {
	return argsformat.Format{argsformat.Context(argsformat.WholeContext), {Kind: argsformat.OpType}, sync}
}

// KernelArgs is the format of a kernel of this library: inputs, outputs, one
// workspace, tiling.
func KernelArgs(inputs, outputs int) string {
	var f argsformat.Format
	for i := range inputs {
		f = append(f, argsformat.Item{Kind: argsformat.Input, Index: int32(i), Folded: true})
	}
	for i := range outputs {
		f = append(f, argsformat.Item{Kind: argsformat.Output, Index: int32(i), Folded: true})
	}
	f = append(f, argsformat.Item{Kind: argsformat.Workspace, Folded: true}, argsformat.Item{Kind: argsformat.Tiling})
	return f.String()
}
