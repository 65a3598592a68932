package artifact

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
)

const (
	xmlHead       = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace     = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	packageSpace  = "http://schemas.openxmlformats.org/package/2006/"
	relationSpace = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	sheetType     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// detailsName is the name of the sheet that says what the run was.
const detailsName = "Run details"

// workbook writes the parts of a workbook into a zip stream.
type workbook struct {
	zip     *zip.Writer
	deflate *flate.Writer // of the last part; each needs a few hundred kilobytes, and there is one part at a time
}

func newWorkbook(w io.Writer) *workbook {
	p := &workbook{zip: zip.NewWriter(w)}
	p.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (_ io.WriteCloser, err error) {
		if p.deflate == nil {
			p.deflate, err = flate.NewWriter(w, flate.BestSpeed)
		} else {
			p.deflate.Reset(w)
		}
		return p.deflate, err
	})
	return p
}

// create opens a part. Its time is the earliest that a zip file can name, so that equal rows make equal files.
func (p *workbook) create(name string) (io.Writer, error) {
	return p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, ModifiedDate: 1<<5 | 1})
}

func (p *workbook) put(name, content string) error {
	w, err := p.create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xmlHead+content)
	return err
}

// open writes the parts that programs look for first, and opens the rows' sheet.
func (p *workbook) open(details bool) (io.Writer, error) {
	second := ""
	if details {
		second = sheetPart("/xl/worksheets/sheet2.xml", sheetType+"worksheet+xml")
	}
	if err := p.put("[Content_Types].xml", `<Types xmlns="`+packageSpace+`content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>`+
		`<Default Extension="xml" ContentType="application/xml"/>`+sheetPart("/xl/workbook.xml", sheetType+"sheet.main+xml")+
		sheetPart("/xl/worksheets/sheet1.xml", sheetType+"worksheet+xml")+second+sheetPart("/xl/styles.xml", sheetType+"styles+xml")+
		sheetPart("/docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml")+`</Types>`); err != nil {
		return nil, err
	}
	if err := p.put("_rels/.rels", relations(relationSpace+"/officeDocument", "xl/workbook.xml", packageSpace+"relationships/metadata/core-properties", "docProps/core.xml")); err != nil {
		return nil, err
	}
	if err := p.put("xl/styles.xml", stylesXML); err != nil {
		return nil, err
	}
	return p.create("xl/worksheets/sheet1.xml")
}

func sheetPart(name, contentType string) string {
	return `<Override PartName="` + name + `" ContentType="` + contentType + `"/>`
}

// relations lists pairs of a type and a part, numbered from rId1.
func relations(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s" Target="%s"/>`, i/2+1, pairs[i], pairs[i+1])
	}
	return `<Relationships xmlns="` + packageSpace + `relationships">` + b.String() + `</Relationships>`
}

// sheetHead is what stands before the rows: the first row stays in view, and the columns have widths.
func sheetHead(widths []int) []byte {
	b := []byte(xmlHead + `<worksheet xmlns="` + mainSpace + `"><sheetViews><sheetView tabSelected="1" workbookViewId="0">` +
		`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/><selection pane="bottomLeft" activeCell="A2" sqref="A2"/>` +
		`</sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>`)
	return append(append(b, columnWidths(widths)...), "<sheetData>"...)
}

// columnWidths makes columns as wide as what is in them, in characters.
func columnWidths(widths []int) string {
	if len(widths) == 0 {
		return ""
	}
	b := []byte("<cols>")
	for i, w := range widths {
		b = fmt.Appendf(b, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, i+1, i+1, min(max(w+besideText, minWidth), maxWidth))
	}
	return string(append(b, "</cols>"...))
}

// finish writes what stands after the rows' sheet, whose used area is given.
func (p *workbook) finish(o Origin, details bool, rows int64, area string) error {
	name := escaped(sheetName(o.Name, details))
	sheets, links := `<sheet name="`+name+`" sheetId="1" r:id="rId1"/>`, []string{relationSpace + "/worksheet", "worksheets/sheet1.xml", relationSpace + "/styles", "styles.xml"}
	if details {
		sheets += `<sheet name="` + detailsName + `" sheetId="2" r:id="rId3"/>`
		links = append(links, relationSpace+"/worksheet", "worksheets/sheet2.xml")
		if err := p.put("xl/worksheets/sheet2.xml", detailsSheet(o, rows)); err != nil {
			return err
		}
	}
	filter := ""
	if first, last, ok := strings.Cut(area, ":"); ok { // Excel keeps a filter's area by a hidden name
		filter = `<definedNames><definedName name="_xlnm._FilterDatabase" localSheetId="0" hidden="1">'` + strings.ReplaceAll(name, "'", "''") + "'!" + fixed(first) + ":" + fixed(last) + `</definedName></definedNames>`
	}
	if err := p.put("xl/workbook.xml", `<workbook xmlns="`+mainSpace+`" xmlns:r="`+relationSpace+`"><bookViews><workbookView/></bookViews><sheets>`+sheets+`</sheets>`+filter+`</workbook>`); err != nil {
		return err
	}
	if err := p.put("xl/_rels/workbook.xml.rels", relations(links...)); err != nil {
		return err
	}
	if err := p.put("docProps/core.xml", `<cp:coreProperties xmlns:cp="`+packageSpace+`metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">`+
		`<dc:title>`+escaped(o.Name)+`</dc:title><dc:creator>Almanac</dc:creator></cp:coreProperties>`); err != nil {
		return err
	}
	return p.zip.Close()
}

// fixed is a cell's name as one that does not move: A1 becomes $A$1.
func fixed(cell string) string {
	letters := strings.TrimRight(cell, "0123456789")
	return "$" + letters + "$" + cell[len(letters):]
}

// escaped is a text as content of an element or an attribute.
func escaped(s string) string {
	valid, marks := validText([]byte(s))
	return string(appendXML(nil, valid, marks))
}

// detailsSheet says what the run was, as far as that is known.
func detailsSheet(o Origin, rows int64) string {
	var g grid
	g.cut(2)
	line := func(label string, put func()) {
		g.openRow()
		g.text(0, styleLabel, []byte(label))
		put()
		g.closeRow()
	}
	zone, wide := offsets{zone: o.Zone}, timeWidth
	for _, d := range []struct {
		label, text string
	}{{"Schedule", o.Name}, {"Schedule id", o.Schedule}, {"Workspace", o.Workspace}, {"Source", o.Source}, {"Run", o.Run}, {"Time zone", o.Zone.String()}} {
		if d.text != "" {
			line(d.label, func() { g.text(1, styleGeneral, []byte(d.text)) })
			wide = max(wide, columnsWide([]byte(d.text)))
		}
	}
	for _, d := range []struct {
		label string
		at    int64
		known bool
	}{{"Due", zone.local(o.Nominal), !o.Nominal.IsZero()}, {"Data as of", zone.local(o.DataAsOf), !o.DataAsOf.IsZero()}} {
		if d.known {
			line(d.label, func() { g.number(1, styleTime, appendSerial(nil, d.at, 0)) })
		}
	}
	line("Rows", func() { g.number(1, styleInteger, fmt.Append(nil, rows)) })
	return `<worksheet xmlns="` + mainSpace + `"><sheetViews><sheetView workbookViewId="0"/></sheetViews><sheetFormatPr defaultRowHeight="15"/>` +
		columnWidths([]int{len("Schedule id"), wide}) + `<sheetData>` + string(g.b) + `</sheetData></worksheet>`
}
