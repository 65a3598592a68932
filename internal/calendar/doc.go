// Package calendar answers when a schedule is due and where a month begins. It is pure: it has no clock, reads no
// network, and the same input gives the same answer for as long as the zone data stay the same.
//
// # Recurrences
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
// # Never
//
// The calendar repeats its leap days within 8 years and its weekdays on a leap day within 40, across a century without a
// leap day too. Searches therefore end after 41 years, and what is not due by then is never due. Parse refuses such rules.
package calendar
