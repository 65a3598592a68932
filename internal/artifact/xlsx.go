package artifact

import (
	"strconv"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// What a sheet of Excel holds:
// https://support.microsoft.com/office/excel-specifications-and-limits-1672b34d-7043-467e-8e27-269d656771c3
const (
	maxSheetRows    = 1_048_576 // the header is one
	maxSheetColumns = 16_384
	maxCellUnits    = 32_767
	// A part of 4 GiB or more needs ZIP64, which Excel wants to repair where the part's local header does not announce it
	// (https://github.com/apache/poi/pull/154); a header that is written before its part cannot know.
	maxSheetBytes = 4_000_000_000
)

const (
	sheetBlock  = 128 << 10
	sheetBlocks = 3 // one being filled, one waiting, one being compressed
)

// Widths of columns, in characters.
const (
	minWidth    = 6
	maxWidth    = 60
	dateWidth   = 10
	timeWidth   = 19
	millisWidth = timeWidth + 4
	besideText  = 2 // room at both sides
	filterArrow = 3 // beside a header
)

// xlsx writes the rows' sheet straight into a zip stream, which another goroutine compresses.
type xlsx struct {
	grid
	zip      *workbook
	aside    *aside
	flushed  int64 // bytes of the sheet that were handed over
	maxBytes int64
	origin   Origin
	details  bool
	columns  []source.Column
	widths   []int // by column; nil once the sheet's head is written
	zone     offsets
	scratch  []byte
}

func newXLSX(f Format, o *out) encoder {
	if f.Origin.Zone == nil {
		f.Origin.Zone = time.UTC
	}
	return &xlsx{zip: newWorkbook(o), maxBytes: maxSheetBytes, origin: f.Origin, details: f.Details, zone: offsets{zone: f.Origin.Zone}}
}

func (e *xlsx) begin(columns []source.Column) error {
	if n := len(columns); n > maxSheetColumns {
		return failure.New(failure.FileUnsupported, "the result has %d columns; a sheet of XLSX takes %d: select fewer columns, or choose the kind csv or parquet", n, maxSheetColumns)
	}
	sheet, err := e.zip.open(e.details)
	if err != nil {
		return err
	}
	e.aside = startAside(sheet, sheetBlocks)
	e.columns, e.widths = columns, make([]int, len(columns))
	e.cut(len(columns))
	for i, c := range columns {
		e.measure(i, columnsWide([]byte(c.Name))+filterArrow)
	}
	e.openRow()
	for i, c := range columns {
		if err := e.fits(i, []byte(c.Name)); err != nil {
			return err
		}
		e.text(i, styleHeader, []byte(c.Name))
		if err := e.more(); err != nil {
			return err
		}
	}
	e.closeRow()
	return nil
}

func (e *xlsx) row(cells []source.Value) error {
	if e.at == maxSheetRows {
		return failure.New(failure.FileTooLarge, "row %d does not fit: a sheet of XLSX takes %d rows, its header included: narrow the query, or choose the kind csv or parquet", e.at, maxSheetRows)
	}
	e.openRow()
	for i := range cells {
		if err := e.cell(i, &cells[i]); err != nil {
			return err
		}
		if err := e.more(); err != nil {
			return err
		}
	}
	e.closeRow()
	return nil
}

func (e *xlsx) end() error {
	e.b = append(e.b, "</sheetData>"...)
	area := e.area()
	if area != "" {
		e.b = append(append(append(e.b, `<autoFilter ref="`...), area...), `"/>`...)
	}
	e.b = append(e.b, "</worksheet>"...)
	if err := e.flush(); err != nil {
		return err
	}
	if err := e.aside.finish(); err != nil {
		return err
	}
	return e.zip.finish(e.origin, e.details, e.at-1, area)
}

// stop ends the goroutine, however far the file has come.
func (e *xlsx) stop() {
	if e.aside != nil {
		e.aside.finish()
	}
}

// cell appends the i-th cell of the row that is open; NULL is no cell at all.
func (e *xlsx) cell(i int, v *source.Value) error {
	switch v.Kind {
	case source.KindNull:
		return nil
	case source.KindInt:
		if v.Int > maxExact || v.Int < -maxExact {
			return e.spelled(i, strconv.AppendInt(e.scratch[:0], v.Int, 10))
		}
		e.number(i, styleInteger, strconv.AppendInt(e.scratch[:0], v.Int, 10))
	case source.KindText:
		style := styleGeneral
		if dangerous(v.Text) {
			style = styleText
		}
		return e.written(i, style, v.Text)
	case source.KindFloat:
		return e.float(i, v.Float)
	case source.KindDecimal:
		return e.decimal(i, v.Text)
	case source.KindBool:
		e.boolean(i, v.Int != 0)
		e.measure(i, len("FALSE"))
	case source.KindBytes:
		if n := len(`\x`) + 2*len(v.Text); n > maxCellUnits {
			return e.tooLong(i, n)
		}
		return e.spelled(i, appendHex(e.scratch[:0], v.Text))
	case source.KindDate, source.KindTimestamp:
		return e.moment(i, v.Time, v.Kind == source.KindTimestamp)
	default:
		return unknownKind(i, v)
	}
	return nil
}

// number appends a number's digits, which may lie in scratch.
func (e *xlsx) number(i int, style cellStyle, digits []byte) {
	e.grid.number(i, style, digits)
	e.measure(i, len(digits))
}

// spelled appends as text what was made in scratch, in a cell that stays text when a person edits it.
func (e *xlsx) spelled(i int, s []byte) error {
	e.scratch = s
	return e.written(i, styleText, s)
}

// written appends a text, unless it is too long for a cell.
func (e *xlsx) written(i int, style cellStyle, s []byte) error {
	if err := e.fits(i, s); err != nil {
		return err
	}
	e.text(i, style, s)
	if e.widths != nil {
		e.measure(i, columnsWide(s))
	}
	return nil
}

func (e *xlsx) float(i int, f float64) error {
	switch {
	case !holdable(f):
		return e.spelled(i, appendFloat(e.scratch[:0], f))
	case f == 0:
		f = 0 // Excel knows one zero
	}
	e.number(i, styleGeneral, appendFloat(e.scratch[:0], f))
	return nil
}

// decimal appends a number with as many decimals as the source wrote, if a double gives them back, and otherwise a text.
func (e *xlsx) decimal(i int, s []byte) error {
	if !exactJSON(s) {
		return e.written(i, styleText, s)
	}
	if decimals, ok := scale(s); ok {
		e.number(i, styleDecimal+cellStyle(decimals), s)
		return nil
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || !holdable(f) {
		return e.written(i, styleText, s)
	}
	return e.float(i, f)
}

// moment appends a date, or a time by the zone's clocks; years that Excel does not have are ISO 8601.
func (e *xlsx) moment(i int, t time.Time, clock bool) error {
	local := t.Unix()
	if clock && local > firstSerial-day && local <= lastSerial+day {
		local = e.zone.local(t)
	}
	if local < firstSerial || local > lastSerial {
		return e.spelled(i, isoTime(t, clock))
	}
	style, wide := styleDate, dateWidth
	switch nanos := t.Nanosecond(); {
	case clock && nanos != 0:
		style, wide = styleMillis, millisWidth
	case clock:
		style, wide = styleTime, timeWidth
	}
	e.scratch = appendSerial(e.scratch[:0], local, t.Nanosecond())
	e.grid.number(i, style, e.scratch)
	e.measure(i, wide)
	return nil
}

// fits refuses a text that is too long for a cell. Bytes that are not UTF-8 count as they will be written: not more.
func (e *xlsx) fits(i int, s []byte) error {
	if len(s) <= maxCellUnits {
		return nil
	}
	valid, _ := validText(s)
	if n := units(valid); n > maxCellUnits {
		return e.tooLong(i, n)
	}
	return nil
}

func (e *xlsx) tooLong(i, n int) error {
	where := "row " + strconv.FormatInt(e.at-1, 10)
	if e.at == 1 {
		where = "the header"
	}
	return failure.New(failure.FileUnsupported, "%s, column %d (%q) holds %d characters; a cell of XLSX takes %d: shorten the text in the query, or choose the kind csv or parquet",
		where, i+1, failure.Cut(e.columns[i].Name, 60), n, maxCellUnits)
}

// measure notes how wide a column must be, as long as its width is not written.
func (e *xlsx) measure(i, characters int) {
	if e.widths != nil && characters > e.widths[i] {
		e.widths[i] = characters
	}
}

// more hands a full block over.
func (e *xlsx) more() error {
	if len(e.b) < sheetBlock {
		return nil
	}
	return e.flush()
}

// flush hands over what there is; the sheet's head, with the widths of the columns as they are known by then, comes first.
func (e *xlsx) flush() (err error) {
	if e.widths != nil {
		e.b = append(sheetHead(e.widths), e.b...)
		e.widths = nil
	}
	if e.flushed += int64(len(e.b)); e.flushed > e.maxBytes {
		return failure.New(failure.FileTooLarge, "the sheet passes %d bytes of XML at row %d, more than Excel opens without repair: narrow the query, or choose the kind csv or parquet", e.maxBytes, e.at-1)
	}
	e.b, err = e.aside.pass(e.b)
	return err
}
