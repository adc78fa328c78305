"""Who may do what in a realm: privileges, what they are granted on, and the decision, as pure functions over rules read once a request.

This package knows nothing of requests, tokens and people who prove who they are: a caller comes to it as a principal's entity number
and the names of roles. It writes through the rooms that keep roles, and checks what they are given.
"""

from headwater.access.access_decisions import AccessDecisions
from headwater.access.access_plugin import AccessPlugin, AccessSubject, PluginDecisions, load_access_plugin
from headwater.access.access_reader import AccessReader, RoleHolder, reference_of, roles_of, rule_of, rules_of
from headwater.access.access_rules import (
    ANY_REFERENCE,
    NO_RULES,
    AccessExplanation,
    AccessQuestion,
    AccessRule,
    AccessRules,
    ReferenceName,
    Securable,
    explain_access,
)
from headwater.access.forbidden import ForbiddenError
from headwater.access.privileges import (
    INCLUDED,
    PRIVILEGES,
    Privilege,
    PrivilegeRule,
    SecurableKind,
    check_grantable,
    included_privileges,
    parse_privilege,
)
from headwater.access.securable_text import checked_pattern, make_grant, parse_securable, securable_text

__all__ = [
    "ANY_REFERENCE",
    "INCLUDED",
    "NO_RULES",
    "PRIVILEGES",
    "AccessDecisions",
    "AccessExplanation",
    "AccessPlugin",
    "AccessQuestion",
    "AccessReader",
    "AccessRule",
    "AccessRules",
    "AccessSubject",
    "ForbiddenError",
    "PluginDecisions",
    "Privilege",
    "PrivilegeRule",
    "ReferenceName",
    "RoleHolder",
    "Securable",
    "SecurableKind",
    "check_grantable",
    "checked_pattern",
    "explain_access",
    "included_privileges",
    "load_access_plugin",
    "make_grant",
    "parse_privilege",
    "parse_securable",
    "reference_of",
    "roles_of",
    "rule_of",
    "rules_of",
    "securable_text",
]
