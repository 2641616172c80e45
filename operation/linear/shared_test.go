package linear

import (
	"testing"

	"goatb/operation"
	"goatb/operation/optest"
)

func decode(param []byte) (operation.Spec, error) { return operation.Decode(param, DefaultLinear()) }

func TestRows(t *testing.T) { optest.CheckRows(t, "linear", decode, 391) }

func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "LinearOperation", decode) }
