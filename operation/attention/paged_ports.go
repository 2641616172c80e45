package attention

import (
	"strconv"
	"strings"

	"goatb/operation"
)

// pagedPorts holds the positions of a paged attention's inputs, -1 for one
// that the parameters leave out.
type pagedPorts struct {
	query, key, value, tables, contextLens int
	mask, runStatus                        int
	keyScale, keyOffset                    int
	valueScale, valueOffset                int
	queryLens, razor, probScale, logN      int
}

// place fills in the positions of the inputs and shows them in ATB's order, each with
// its name and the cell of its native combinations.
func (p PagedAttention) place(x *pagedPorts, show func(name, cell string)) {
	*x = pagedPorts{
		value: -1, mask: -1, runStatus: -1, keyScale: -1, keyOffset: -1, valueScale: -1, valueOffset: -1,
		queryLens: -1, razor: -1, probScale: -1, logN: -1,
	}
	n := 0
	add := func(there bool, at *int, name, cell string) {
		if !there {
			return
		}
		if *at, n = n, n+1; show != nil {
			show(name, cell)
		}
	}
	q, kv := "T", "T"
	if p.int8All() {
		q, kv = "Q", "Q"
	}
	dequant := p.QuantType == QuantDequantFusion
	if dequant {
		kv = "int8"
	}
	add(true, &x.query, "query", q)
	add(true, &x.key, "kCache", kv)
	add(!p.mla(), &x.value, "vCache", kv)
	add(true, &x.tables, "blockTables", "int32")
	add(true, &x.contextLens, "contextLens!", "int32")
	add(p.masked(), &x.mask, "mask", "M")
	add(p.BatchRunStatusEnable, &x.runStatus, "batchRunStatus!", "int32")
	add(dequant, &x.keyScale, "kDescale", "S")
	add(p.quantOffset(), &x.keyOffset, "kOffset", "int32")
	add(dequant, &x.valueScale, "vDescale", "S")
	add(p.quantOffset(), &x.valueOffset, "vOffset", "int32")
	add(p.spec(), &x.queryLens, "qSeqLens!", "int32")
	add(p.CompressType == PagedCompressKVHeadRope, &x.razor, "razorOffset", "f32")
	add(p.int8All(), &x.keyScale, "kDescale", "f32")
	add(p.int8All(), &x.valueScale, "vDescale", "f32")
	add(p.QuantType == QuantOffline, &x.probScale, "pScale", "f32")
	add(p.ScaleType == ScaleLogN, &x.logN, "logN", "f32")
}

func (p PagedAttention) ports() pagedPorts {
	var x pagedPorts
	p.place(&x, nil)
	return x
}

// Signature describes the operands.
func (p PagedAttention) Signature() operation.Signature {
	var x pagedPorts
	var names, cells []string
	p.place(&x, func(name, cell string) { names, cells = append(names, name), append(cells, cell) })
	out := "T"
	if p.int8All() {
		out = "O"
	}
	return operation.Signature{
		Name: "PagedAttentionOperation", In: operation.Ports(names...), Out: operation.Ports("output"), Variant: p.variant(),
		Native: strings.Join(cells, ",") + "->" + out + " | T=f32,f16,bf16 Q=int8,f32,f16,bf16 M=f32,f16,bf16 S=f32,int64 O=f16,bf16",
	}
}

// variant is the key of ATB's table.
func (p PagedAttention) variant() string {
	var b strings.Builder
	b.WriteString("PagedAttentionOperation")
	flag := func(name string, on bool) {
		digit := 0
		if on {
			digit = 1
		}
		b.WriteString(name + strconv.Itoa(digit))
	}
	if p.mla() {
		for _, part := range [...]struct {
			name string
			on   bool
		}{
			{"Mla", true}, {"Mask", p.masked()}, {"Batch", p.BatchRunStatusEnable},
			{"QuantOffline", p.QuantType == QuantOffline}, {"QuantOnline", p.QuantType == QuantOnline}, {"Qlens", p.spec()},
		} {
			if part.on {
				b.WriteString(part.name)
			}
		}
		return b.String()
	}
	if p.ScaleType == ScaleLogN {
		b.WriteString("LogN1")
	} else {
		flag("QKVQuantOnline", p.QuantType == QuantOnline)
		flag("QKVQuantOffline", p.QuantType == QuantOffline)
	}
	flag("RazorOffset", p.CompressType == PagedCompressKVHeadRope)
	flag("QLens", p.spec())
	flag("Mask", p.masked())
	flag("Batch", p.BatchRunStatusEnable)
	flag("Quant", p.QuantType == QuantDequantFusion)
	flag("Offset", p.quantOffset())
	return b.String()
}
