"""The demonstrations of Nessie's own documentation, through Spark and pynessie.

The statements and commands are those of its notebooks: the one about statistics of basketball players, and the one about regions and
nations; and those by which its developers show a conflict. Spark 3.5 and pynessie 0.67 have renamed a few things since: a namespace is
created first, ``nessie contents --list`` is ``nessie content list``, ``url`` is ``uri``. Each notebook reads files that are not kept
here, so that a few of their rows are made. Nessie's extensions of Spark's SQL are in no package that could be had: what they do, its
command line does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from nessie_lake import NessieLake
from spark_sql import SparkSql

from pynessie_env import NessieFault, Pynessie

pytestmark = pytest.mark.long

SALARIES = """Season,Team,Salary,Player
2003-04,Cleveland Cavaliers,$4018920,Lebron James
2004-05,Cleveland Cavaliers,$4320360,Lebron James
1984-85,Chicago Bulls,$550000,Michael Jordan
"""
TOTALS = """Season,Age,Team,ORB,DRB,TRB,AST,STL,BLK,TOV,PTS,Player,RSorPO
2003-04,19,CLE,99,333,432,465,130,58,273,1654,Lebron James,Regular Season
2005-06,21,CLE,18,87,105,76,18,9,65,400,Lebron James,Playoffs
"""
ALLSTARS = """Season,Age,Team,ORB,TRB,AST,STL,BLK,TOV,PF,PTS,Player
2004-05,20,CLE,1,8,6,2,0,3,0,13,Lebron James
1984-85,21,CHI,3,6,2,3,1,1,4,7,Michael Jordan
"""


def branch_sql(lake: NessieLake, reference: str) -> SparkSql:
    """A session of its own, in which the catalog is at a branch."""
    session = lake.sql.beside()
    session.set_catalog("nessie", lake.options(version=1, reference=reference))
    return session


def heads(pynessie: Pynessie) -> dict[str, str]:
    """The commit of each branch, as the command line tells it."""
    rows = [line.replace("*", " ").split() for line in pynessie.run("--verbose", "branch").splitlines()]
    return {row[0]: row[1] for row in rows if row}


def tables(pynessie: Pynessie, *words: str) -> list[str]:
    """What the command line lists as tables."""
    listed = pynessie.run("content", "list", "-t", "ICEBERG_TABLE", *words).split()
    return sorted(listed[1:])


def test_demo_of_basketball_players(nessie: NessieLake, pynessie: Pynessie, tmp_path: Path) -> None:
    for name, text in (("salaries", SALARIES), ("totals_stats", TOTALS), ("allstar_games_stats", ALLSTARS)):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    spark = branch_sql(nessie, "main")

    spark("CREATE NAMESPACE nessie.nba")

    # a branch for the first load
    pynessie.run("branch", "dev")
    assert heads(pynessie)["dev"] == heads(pynessie)["main"]
    spark_dev = branch_sql(nessie, "dev")
    spark_dev(
        "CREATE TABLE IF NOT EXISTS nessie.nba.salaries (Season STRING, Team STRING, Salary STRING, Player STRING) USING iceberg"
    )
    load(spark_dev, tmp_path, "salaries", "salaries_table")
    spark_dev(
        """CREATE TABLE IF NOT EXISTS nessie.nba.totals_stats (
             Season STRING, Age STRING, Team STRING, ORB STRING, DRB STRING, TRB STRING, AST STRING, STL STRING,
             BLK STRING, TOV STRING, PTS STRING, Player STRING, RSorPO STRING)
             USING iceberg"""
    )
    load(spark_dev, tmp_path, "totals_stats", "stats_table")
    assert spark("select count(*) from nessie.nba.`salaries@dev`") == spark_dev("select count(*) from salaries_table")
    assert spark("select count(*) from nessie.nba.`totals_stats@dev`") == spark_dev("select count(*) from stats_table")
    assert tables(pynessie) == []
    assert tables(pynessie, "--ref", "dev") == ["nba.salaries", "nba.totals_stats"]
    assert heads(pynessie)["dev"] != heads(pynessie)["main"]

    # all of it goes to main at once
    changed = pynessie.run("diff", "main", "dev")
    assert [key in changed for key in ("ContentKey: nba.salaries", "ContentKey: nba.totals_stats")] == [True, True]
    assert "Merged dev onto main" in pynessie.run("merge", "dev", "-b", "main", "--force")
    assert tables(pynessie) == ["nba.salaries", "nba.totals_stats"]
    assert pynessie.run("diff", "main", "dev").strip() == ""
    assert spark("select count(*) from nessie.nba.salaries") == [(3,)]

    # changes of every kind on a second branch
    pynessie.run("branch", "etl", "main")
    spark_etl = branch_sql(nessie, "etl")
    spark_etl(
        """INSERT INTO nessie.nba.salaries VALUES
    ("2017-18", "Golden State Warriors", "$25000000", "Kevin Durant"),
    ("2018-19", "Golden State Warriors", "$30000000", "Kevin Durant"),
    ("2019-20", "Brooklyn Nets", "$37199000", "Kevin Durant"),
    ("2020-21", "Brooklyn Nets", "$39058950", "Kevin Durant")
    """
    )
    spark_etl("ALTER TABLE nessie.nba.totals_stats DROP COLUMN Age")
    spark_etl(
        """CREATE TABLE IF NOT EXISTS nessie.nba.allstar_games_stats (
          Season STRING, Age STRING, Team STRING, ORB STRING, TRB STRING, AST STRING, STL STRING, BLK STRING,
          TOV STRING, PF STRING, PTS STRING, Player STRING)
          USING iceberg"""
    )
    load(spark_etl, tmp_path, "allstar_games_stats", "allstar_table")
    assert spark("select count(*) from nessie.nba.`allstar_games_stats@etl`") == [(2,)]
    assert tables(pynessie) == ["nba.salaries", "nba.totals_stats"]
    assert tables(pynessie, "--ref", "etl") == ["nba.allstar_games_stats", "nba.salaries", "nba.totals_stats"]
    pynessie.run("merge", "etl", "-b", "main", "--force")
    assert tables(pynessie) == tables(pynessie, "--ref", "etl")
    assert spark("select count(*) from nessie.nba.allstar_games_stats") == [(2,)]
    assert "Age" not in [name for name, *_ in spark("DESCRIBE TABLE nessie.nba.totals_stats")]

    # an experiment that nobody else sees
    pynessie.run("branch", "experiment", "main")
    spark_experiment = branch_sql(nessie, "experiment")
    spark_experiment("DROP TABLE IF EXISTS nessie.nba.totals_stats")
    spark_experiment(
        """INSERT INTO nessie.nba.salaries VALUES
    ("2015-16", "Dallas Mavericks", "$8333333", "Dirk Nowitzki"),
    ("2016-17", "Dallas Mavericks", "$25000000", "Dirk Nowitzki"),
    ("2017-28", "Dallas Mavericks", "$5000000", "Dirk Nowitzki"),
    ("2018-19", "Dallas Mavericks", "$5000000", "Dirk Nowitzki")
    """
    )
    assert tables(pynessie, "--ref", "experiment") == ["nba.allstar_games_stats", "nba.salaries"]
    assert tables(pynessie) == ["nba.allstar_games_stats", "nba.salaries", "nba.totals_stats"]
    assert spark("select count(*) from nessie.nba.`salaries@experiment`") == [(11,)]
    assert spark("select count(*) from nessie.nba.salaries") == [(7,)]


def load(session: SparkSql, folder: Path, name: str, view: str) -> None:
    """Insert the rows of a file, as the notebook does."""
    session(f'CREATE OR REPLACE TEMPORARY VIEW {view} USING csv OPTIONS (path "{folder}/{name}.csv", header true)')
    session(f"INSERT INTO nessie.nba.{name} SELECT * FROM {view}")


def test_demo_of_regions_and_nations(nessie: NessieLake, pynessie: Pynessie) -> None:
    pynessie.run("branch", "dev")
    spark_dev = branch_sql(nessie, "dev")
    spark_dev("CREATE NAMESPACE nessie.testing")
    spark_dev("CREATE TABLE nessie.testing.region (R_REGIONKEY BIGINT, R_NAME STRING, R_COMMENT STRING) USING iceberg")
    spark_dev("INSERT INTO nessie.testing.region VALUES (0, 'AFRICA', ''), (1, 'AMERICA', ''), (3, 'EUROPE', '')")
    spark_dev(
        "CREATE TABLE nessie.testing.nation (N_NATIONKEY BIGINT, N_NAME STRING, N_REGIONKEY BIGINT, N_COMMENT STRING)"
        " USING iceberg PARTITIONED BY (truncate(2, N_NAME))"
    )
    spark_dev("INSERT INTO nessie.testing.nation VALUES (0, 'ALGERIA', 0, ''), (1, 'ARGENTINA', 1, '')")
    assert (tables(pynessie), tables(pynessie, "--ref", "dev")) == ([], ["testing.nation", "testing.region"])
    pynessie.run("merge", "dev", "-b", "main", "--force")

    pynessie.run("branch", "etl", "main")
    spark_etl = branch_sql(nessie, "etl")
    spark_etl(
        """INSERT INTO nessie.testing.nation VALUES
    (25, "SYLDAVIA", 3, "King Ottokar's Sceptre"), (26, "SAN THEODOROS", 1, "The Picaros")"""
    )
    spark_etl("ALTER TABLE nessie.testing.region ADD COLUMN R_ABBREV STRING")
    spark_etl(
        "CREATE TABLE nessie.testing.city (C_CITYKEY BIGINT, C_NAME STRING, N_NATIONKEY BIGINT, C_COMMNT STRING)"
        " USING iceberg PARTITIONED BY (N_NATIONKEY)"
    )
    names = "result = ['.'.join(entry.name.elements) for entry in client.list_keys({!r}).entries]"
    assert "testing.city" not in pynessie.execute(names.format("main"))
    pynessie.execute("client.merge('etl', 'main')")
    assert pynessie.execute(names.format("main")) == pynessie.execute(names.format("etl"))

    pynessie.run("branch", "experiment", "main")
    spark_experiment = branch_sql(nessie, "experiment")
    spark_experiment("DROP TABLE nessie.testing.nation")
    spark_experiment("""INSERT INTO TABLE nessie.testing.region VALUES (5, "AUSTRALIA", "Let's hop there", "AUS")""")
    spark_experiment("""INSERT INTO TABLE nessie.testing.region VALUES (6, "ANTARTICA", "It's cold", "ANT")""")
    assert tables(pynessie, "--ref", "experiment") == ["testing.city", "testing.region"]
    spark = branch_sql(nessie, "main")
    assert len(spark("select * from nessie.testing.`region@experiment`")) == 5
    assert len(spark("select * from nessie.testing.region")) == 3
    assert spark("select count(*) from nessie.testing.nation") == [(4,)]


def test_demo_of_a_conflict(nessie: NessieLake, pynessie: Pynessie) -> None:
    spark = branch_sql(nessie, "main")
    spark("CREATE TABLE nessie.sales.foo (what STRING)")
    pynessie.run("branch", "branch_a")
    pynessie.run("branch", "branch_b")
    branch_sql(nessie, "branch_a")("INSERT INTO nessie.sales.foo VALUES ('abc')")
    branch_sql(nessie, "branch_b")("INSERT INTO nessie.sales.foo VALUES ('def')")

    pynessie.run("merge", "branch_a", "-b", "main", "--force")
    assert spark("SELECT * FROM nessie.sales.foo") == [("abc",)]
    told = pynessie.fail("merge", "branch_b", "-b", "main", "--force")
    assert "Status code: 409" in told and "Error code: REFERENCE_CONFLICT" in told and "sales.foo" in told
    with pytest.raises(NessieFault) as fault:
        pynessie.execute("client.merge('branch_b', 'main')")
    assert fault.value.kind == "NessieReferenceConflictException"
    assert spark("SELECT * FROM nessie.sales.foo") == [("abc",)]
    assert spark("SELECT * FROM nessie.sales.`foo@branch_b`") == [("def",)]
