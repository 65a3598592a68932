// Package calendar answers when a schedule is due and where a month begins. It is pure: it has no clock, reads no
// network, and the same input gives the same answer for as long as the zone data stay the same.
//
// # Recurrences
//
// A recurrence says when by exactly one of a cron line, an interval and a workday; start, end, count and jitter go with
// each. Local times are those of its zone.
//
// # Cron lines
//
// A rule is a cron line of exactly five fields: minute, hour, day of month, month, day of week. Fields take numbers,
// names (JAN, MON; any case), lists, ranges and steps; the day of month takes L (the last day), the day of week takes
// 5L (the last Friday) and 5#3 (the third Friday). Sunday is 0 or 7. With day of month and day of week both set, either
// matches; a day field of * or */1 is not set. */2 is set.
//
// The rule is matched against the local clock of the zone. Local clocks jump, so a written policy decides:
//
//   - Hour field * or */n: the rule means instants. Each instant whose local time matches is due: on a day with 25 hours
//     "0 * * * *" is due 25 times. A local time that a change leaves out is no instant, so nothing is due for it, and
//     nothing is recorded, whatever the gap policy.
//   - Any other hour field (0-23 too): the rule means local times. Each matching local time is due once, at the first
//     instant that shows it; the second showing of a repeated hour is never due.
//   - A matching local time that a change leaves out follows the gap policy: run-once makes it due at the first instant
//     after the gap, skip passes it over and reports it. Several local times that come to one instant are one occurrence.
//
// # Intervals
//
// "every" is elapsed time: due at start, which it needs, and each so many hours, minutes and seconds after it. Clocks do
// not come into it: "24h" from 09:00 is due at 10:00 once they have gone forward, and the preview says so. It has no
// gaps, and the policy skip is refused.
//
// # Workdays
//
// "workday" is the n-th day of each month, from its start (1 to 23) or its end (-1, the last, to -23), that is neither
// Saturday nor Sunday nor one of "holidays", at the local time "at". It means local times as above, and the gap policy
// holds. A month with fewer workdays is passed over, and the preview says so; it names the holidays that moved a day.
// A holiday on a weekend changes nothing; one listed twice is refused.
//
// # Start, end, count
//
// Nothing is due before start or at and after end: start is in, end is out. Both are instants to the second, or local
// times without an offset. A local time that comes twice is the first of them; one that a change leaves out is the first
// instant after the gap, whatever the gap policy. An end without a start is possible.
//
// Count, which needs start, ends the rule with so many occurrences, the first from start on. What the policy skip passes
// over is no occurrence and does not count; a missed or held-back occurrence does, since the count knows nothing of runs.
// With an end as well, what comes first ends the rule. A count that takes more than 1,000 years is refused. A gap belongs
// to the time at which the clocks change: it is reported if that lies from start on, before the end and not after the
// last of count.
//
// # Jitter
//
// Jitter delays admission, by what Delay says, and never the nominal time: Next, Preview, count and end know nothing of
// it. It is at most an hour, and at most half an interval.
//
// # Never
//
// The calendar repeats its leap days within 8 years and its weekdays on a leap day within 40, across a century without a
// leap day too. Searches therefore end after 41 years (of a workday: 41 after the last holiday), and what is not due by
// then is never due. Parse refuses rules that are never due: a day that no month has, local times that always fall into
// a gap under the policy skip, nothing between start and end. Whether all is in the past it cannot tell: it has no clock.
package calendar
