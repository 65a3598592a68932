package artifact

import (
	"fmt"
	"strconv"
	"strings"
)

// cellStyle is the index of a cell's format in the workbook's list of them.
type cellStyle int

const (
	styleGeneral cellStyle = iota
	styleHeader
	styleLabel   // of the details
	styleLines   // text of several lines, shown as such
	styleText    // stays text when a person edits the cell
	styleInteger // all digits, where the general format turns to powers of ten
	styleDate
	styleTime
	styleMillis
	styleDecimal // and as many more as it has decimals
	styles       = styleDecimal + maxScale + 1
)

// firstFormat is the first number of a number format that is not built in.
const firstFormat = 164

// stylesXML lists the formats in the order of cellStyle.
var stylesXML = func() string {
	var formats, cells strings.Builder
	count := 0
	cell := func(format int, more string) {
		fmt.Fprintf(&cells, `<xf numFmtId="%d" fontId="0" fillId="0" borderId="0" xfId="0"%s/>`, format, more)
	}
	custom := func(code string) int {
		fmt.Fprintf(&formats, `<numFmt numFmtId="%d" formatCode="%s"/>`, firstFormat+count, code)
		count++
		return firstFormat + count - 1
	}
	cell(0, "")
	cells.WriteString(`<xf numFmtId="0" fontId="1" fillId="2" borderId="1" xfId="0" applyFont="1" applyFill="1" applyBorder="1"/>`)
	cells.WriteString(`<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>`)
	cells.WriteString(`<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf>`)
	cell(49, ` quotePrefix="1" applyNumberFormat="1"`) // "@"
	cell(1, ` applyNumberFormat="1"`)                  // "0"
	for _, code := range []string{`yyyy\-mm\-dd`, `yyyy\-mm\-dd\ hh:mm:ss`, `yyyy\-mm\-dd\ hh:mm:ss.000`} {
		cell(custom(code), ` applyNumberFormat="1"`)
	}
	cell(1, ` applyNumberFormat="1"`)
	for scale := 1; scale <= maxScale; scale++ {
		cell(custom("0."+strings.Repeat("0", scale)), ` applyNumberFormat="1"`)
	}
	return fmt.Sprintf(`<styleSheet xmlns="%s"><numFmts count="%d">%s</numFmts>`, mainSpace, count, formats.String()) +
		`<fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font><font><b/><sz val="11"/><name val="Calibri"/><family val="2"/></font></fonts>` +
		`<fills count="3"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>` +
		`<fill><patternFill patternType="solid"><fgColor rgb="FFDCE6F1"/><bgColor indexed="64"/></patternFill></fill></fills>` +
		`<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border><border><left/><right/><top/><bottom style="thin"><color rgb="FF7F7F7F"/></bottom><diagonal/></border></borders>` +
		`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>` +
		fmt.Sprintf(`<cellXfs count="%d">%s</cellXfs>`, styles, cells.String()) +
		`<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`
}()

// What follows a cell's row number, by style.
var numberOpens, textOpens = func() (numbers, texts [styles]string) {
	for s := range styles {
		mark := `"`
		if s > 0 {
			mark = fmt.Sprintf(`" s="%d"`, s)
		}
		numbers[s], texts[s] = mark+`><v>`, mark+` t="inlineStr"><is><t`
	}
	return numbers, texts
}()

// grid appends a sheet's rows and cells.
type grid struct {
	b      []byte
	at     int64    // number of the row that is open, or was the last one; the first is 1
	digits []byte   // of at
	opens  [][]byte // by column: how a cell begins, up to its row's number
}

// cut makes columns.
func (g *grid) cut(columns int) {
	g.opens = make([][]byte, columns)
	for i := range g.opens {
		g.opens[i] = []byte(`<c r="` + columnName(i))
	}
}

// columnName is what Excel calls the i-th column, from 0: A to Z, AA and so on.
func columnName(i int) string {
	name := ""
	for i++; i > 0; i = (i - 1) / 26 {
		name = string(rune('A'+(i-1)%26)) + name
	}
	return name
}

// area is the part of the sheet that is used; "" if there are no columns.
func (g *grid) area() string {
	if len(g.opens) == 0 {
		return ""
	}
	return "A1:" + columnName(len(g.opens)-1) + strconv.FormatInt(g.at, 10)
}

func (g *grid) openRow() {
	g.at++
	g.digits = strconv.AppendInt(g.digits[:0], g.at, 10)
	g.b = append(append(append(g.b, `<row r="`...), g.digits...), `">`...)
}

func (g *grid) closeRow() { g.b = append(g.b, "</row>"...) }

func (g *grid) number(i int, style cellStyle, digits []byte) {
	b := append(append(append(g.b, g.opens[i]...), g.digits...), numberOpens[style]...)
	g.b = append(append(b, digits...), "</v></c>"...)
}

func (g *grid) boolean(i int, v bool) {
	b := append(append(append(g.b, g.opens[i]...), g.digits...), `" t="b"><v>`...)
	if v {
		b = append(b, '1')
	} else {
		b = append(b, '0')
	}
	g.b = append(b, "</v></c>"...)
}

// text appends a string in its cell: such a cell is never a formula, whatever its text begins with.
func (g *grid) text(i int, style cellStyle, s []byte) {
	s, marks := validText(s)
	if style == styleGeneral && marks&lineBreak != 0 {
		style = styleLines
	}
	b := append(append(append(g.b, g.opens[i]...), g.digits...), textOpens[style]...)
	if len(s) > 0 && (s[0] <= ' ' || s[len(s)-1] <= ' ') {
		b = append(b, ` xml:space="preserve"`...)
	}
	g.b = append(appendXML(append(b, '>'), s, marks), "</t></is></c>"...)
}
